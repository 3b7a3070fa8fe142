package upstash_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
)

// TestChainFaults: an exchange that fails decides nothing, and what its error says of one
// hit it says of all.
func TestChainFaults(t *testing.T) {
	lie, reply := upstashtest.Lie, upstashtest.Reply
	result := func(r string) upstashtest.Fault { return lie(`[{"result":` + r + `}]`) }
	failed := func(text string) upstashtest.Fault {
		return reply(200, "application/json", `[{"error":`+jsonString(text)+`}]`)
	}
	const yes, no = "1,4,0,3600,0", "0,0,60,3600,0"
	rejectedScript := kind{of: stores.ErrMisconfigured, definite: true, lasting: true, keyOnly: true}
	cases := []struct {
		name string
		f    upstashtest.Fault
		n    int
		want kind
	}{
		{"good", upstashtest.Good(), 3, counted},
		{"all", result("[" + yes + "," + yes + "," + yes + "]"), 3, counted},
		{"refused at the first", result("[" + no + "]"), 1, counted},
		{"refused at the second", result("[" + yes + "," + no + "]"), 2, counted},
		{"refused at the third", result("[" + yes + "," + yes + "," + no + "]"), 3, counted},
		{"no key at the second", result("[" + yes + `,"WRONGTYPE x"]`), 1, ofKey},
		{"NOSCRIPT at the second", result("[" + yes + `,"NOSCRIPT x"]`), 1, refusing},
		{"OOM at the third", result("[" + yes + "," + yes + `,"OOM x"]`), 2, throttled},
		{"timeout at the third", result("[" + yes + "," + yes + `,"ERR timeout"]`), 2, unavailable},

		{"work, then close", upstashtest.Lost(upstashtest.Close()), 0, unavailable},
		{"work, then reset", upstashtest.Lost(upstashtest.Reset()), 0, unavailable},
		{"work, then hang", upstashtest.Lost(upstashtest.Hang()), 0, unavailable},
		{"half of the body, then close", upstashtest.HalfBody(upstashtest.Close()), 0, unavailable},
		{"work, then 502", upstashtest.Lost(reply(502, "text/html", "<title>Bad Gateway</title>")), 0, unavailable},
		{"one of three", result("[" + yes + "]"), 0, unavailable},
		{"two of three", result("[" + yes + "," + yes + "]"), 0, unavailable},
		{"four of three", result("[" + yes + "," + yes + "," + yes + "," + yes + "]"), 0, unavailable},
		{"part of one", result("[" + yes + ",1]"), 0, unavailable},
		{"goes on behind a refusal", result("[" + no + "," + yes + "," + yes + "]"), 0, unavailable},
		{"fails behind a refusal", result("[" + no + `,"WRONGTYPE x"]`), 0, unavailable},
		{"fails behind all", result("[" + yes + "," + yes + "," + yes + `,"WRONGTYPE x"]`), 0, unavailable},
		{"one that makes no sense", result("[" + yes + ",1,6,0,3600,0," + yes + "]"), 0, unavailable},
		{"the last makes no sense", result("[" + yes + "," + yes + ",1,4,0,3600,1]"), 0, unavailable},
		{"nothing", result("[]"), 0, unavailable},
		{"null", result("null"), 0, unavailable},

		{"BUSY", failed("BUSY Redis is busy running a script."), 0, refusing},
		{"READONLY", failed("READONLY You can't write against a read only replica."), 0, refusing},
		{"OOM", failed("OOM command not allowed."), 0, throttled},
		{"quota", failed(quota), 0, exhausted},
		{"WRONGPASS", failed("WRONGPASS invalid or missing auth token"), 0, configured},
		{"NOPERM", failed("NOPERM this user has no permissions to run the 'evalsha' command"), 0, rejectedScript},
		{"no script twice", failed("NOSCRIPT No matching script."), 0, refusing},
		// It may have stopped behind the first hit.
		{"unknown", failed("ERR user_script:12: attempt to index a nil value"), 0, unavailable},
	}
	hits := []stores.Hit{
		{Key: secretKey + "1", Limit: stores.SlidingWindow(5, time.Hour)},
		{Key: secretKey + "2", Limit: stores.TokenBucket(5, time.Hour)},
		{Key: secretKey + "3", Limit: stores.SlidingLog(5, time.Hour)},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			srv := upstashtest.NewScripted(t, tc.f)
			wait := 30 * time.Second
			if tc.name == "work, then hang" {
				wait = time.Second
			}
			out := make([]stores.Decision, 3)
			n, err := open(t, srv.URL, timeout(wait)).TakeAll(t.Context(), hits, out)
			tc.want.check(t, err)
			require.Equal(t, tc.n, n)
			for _, d := range out[n:] {
				require.Zero(t, d)
			}
			require.LessOrEqual(t, srv.Applied(""), 1)
			if n == 0 && tc.want.definite {
				require.Zero(t, srv.Applied(""))
			}
		})
	}
}

// TestChainWithoutScripts: where no script is run, a chain counts at least what INCR can
// count, in order, rather than nothing; and finds out once a minute.
func TestChainWithoutScripts(t *testing.T) {
	const text = "NOPERM this user has no permissions to run the 'evalsha' command or its subcommand"
	srv := upstashtest.New(t)
	s := open(t, srv.URL)
	srv.SetSlotError("EVALSHA", text)
	plain := func(key string, quota int) stores.Hit {
		return stores.Hit{Key: key, Limit: stores.FixedWindow(quota, time.Hour)}
	}
	hits := []stores.Hit{plain("a", 3), plain("b", 2), plain("c", 9)}
	out := make([]stores.Decision, 4)
	for round := range 2 {
		n, err := s.TakeAll(t.Context(), hits, out)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		require.Equal(t, 8-round, out[2].Remaining)
	}
	n, err := s.TakeAll(t.Context(), hits, out)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.False(t, out[1].Allowed)
	require.Equal(t, 1, srv.Count("EVALSHA"))
	require.Equal(t, 8, srv.Count("INCR"))

	// What only the script can count fails at its place, and is asked for by itself.
	sliding := stores.Hit{Key: "d", Limit: stores.SlidingWindow(5, time.Hour)}
	rejected := kind{of: stores.ErrMisconfigured, definite: true, lasting: true, keyOnly: true}
	n, err = s.TakeAll(t.Context(), []stores.Hit{plain("c", 9), sliding, plain("c", 9)}, out)
	rejected.check(t, err)
	require.Equal(t, 1, n)
	srv.Forget()
	n, err = s.TakeAll(t.Context(), []stores.Hit{sliding, plain("c", 9)}, out)
	rejected.check(t, err)
	require.Zero(t, n)
	require.Equal(t, []string{"EVALSHA"}, names(srv), "it is not asked for twice")
	d, err := s.Peek(t.Context(), plain("c", 9))
	require.NoError(t, err)
	require.Equal(t, 6, d.Remaining)

	// Another instance, or this one a minute later, has the script again.
	srv.SetSlotError("EVALSHA", "")
	srv.Forget()
	_, err = open(t, srv.URL).TakeAll(t.Context(), []stores.Hit{plain("c", 9), plain("c", 9)}, out)
	require.NoError(t, err)
	require.Zero(t, srv.Count("INCR"))
}

// TestRealRefusals has a redis-server refuse what a script does: a right that the token
// lacks, memory, writes to a replica. What was counted before that stays, and of the hit
// at which it happened nothing is.
func TestRealRefusals(t *testing.T) {
	lacking := kind{of: stores.ErrMisconfigured, definite: true, lasting: true, keyOnly: true}
	for name, tc := range map[string]struct {
		refuse, allow []any
		chain         []stores.Hit
		n             int
		want          kind
	}{
		"no TIME": {[]any{"ACL", "SETUSER", "default", "-time"}, []any{"ACL", "SETUSER", "default", "+time"}, mixed(""), 1, lacking},
		"no SET":  {[]any{"ACL", "SETUSER", "default", "-set"}, []any{"ACL", "SETUSER", "default", "+set"}, mixed(""), 0, lacking},
		"no GET":  {[]any{"ACL", "SETUSER", "default", "-get"}, []any{"ACL", "SETUSER", "default", "+get"}, mixed("")[1:], 0, lacking},
		"memory":  {[]any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}, mixed("")[1:], 0, throttled},
		"replica": {[]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}, mixed("")[1:], 0, refusing},
	} {
		t.Run(name, func(t *testing.T) {
			srv := upstashtest.NewReal(t)
			s := open(t, srv.URL)
			out := make([]stores.Decision, len(tc.chain))
			_, err := s.Take(t.Context(), costing(five, 2)) // which brings the script along
			require.NoError(t, err)
			_, err = srv.Do(tc.refuse...)
			require.NoError(t, err)
			for range 3 {
				n, err := s.TakeAll(t.Context(), tc.chain, out)
				if tc.n == 0 && tc.chain[0] == mixed("")[0] {
					// INCR counts the first, and the script can't count the second.
					require.Equal(t, 1, n)
				} else {
					require.Equal(t, tc.n, n)
				}
				tc.want.check(t, err)
			}
			_, err = srv.Do(tc.allow...)
			require.NoError(t, err)
			n, err := s.TakeAll(t.Context(), tc.chain, out)
			require.NoError(t, err)
			require.Equal(t, len(tc.chain), n)
			for i, d := range out {
				want := 4
				if tc.chain[i] == mixed("")[0] {
					want = 1
				}
				require.Equal(t, want, d.Remaining, tc.chain[i])
			}
		})
	}
}
