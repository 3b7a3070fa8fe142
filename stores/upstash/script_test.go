package upstash_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

func costing(hit stores.Hit, cost int) stores.Hit {
	hit.Cost = cost
	return hit
}

// names are the commands that came since the last Forget.
func names(srv *upstashtest.Server) (all []string) {
	for _, c := range srv.Commands() {
		all = append(all, c[0])
	}
	srv.Forget()
	return all
}

// TestScriptIsBroughtOnce: a server that does not have the script, since it is new or was
// restarted, gets it with an EVAL, and then is asked by EVALSHA alone. No hit is counted
// twice.
func TestScriptIsBroughtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		s, other := open(t, srv.URL), open(t, srv.URL)
		hit := costing(stores.Hit{Key: "k", Limit: stores.FixedWindow(1000, time.Hour)}, 3)
		used := 0
		take := func(s *upstash.Store, want ...string) {
			t.Helper()
			d, err := s.Take(t.Context(), hit)
			require.NoError(t, err)
			used += 3
			require.Equal(t, 1000-used, d.Remaining)
			require.Equal(t, want, names(srv))
		}
		for range 5 {
			_, err := srv.Do("SCRIPT", "FLUSH")
			require.NoError(t, err)
			take(s, "EVALSHA", "EVAL")
			take(s, "EVALSHA")
			take(other, "EVALSHA")
			require.NoError(t, s.Refund(t.Context(), hit))
			used -= 3
			require.Equal(t, []string{"EVALSHA"}, names(srv))
			_, err = srv.Do("SCRIPT", "FLUSH")
			require.NoError(t, err)
			require.NoError(t, s.Refund(t.Context(), hit))
			used -= 3
			require.Equal(t, []string{"EVALSHA", "EVAL"}, names(srv))
			_, err = s.TakeOwing(t.Context(), hit, 2, time.Minute)
			require.NoError(t, err)
			used += 5
			require.Equal(t, []string{"EVALSHA"}, names(srv))
		}
	})
}

// TestScriptOnUpstash: the script asks for its key to be locked alone, and names it.
func TestScriptOnUpstash(t *testing.T) {
	srv := upstashtest.New(t)
	_, err := open(t, srv.URL).Take(t.Context(), costing(five, 2))
	require.NoError(t, err)
	eval := srv.Commands()[1]
	require.True(t, strings.HasPrefix(eval[1], "#!lua flags=allow-key-locking\n"))
	require.Equal(t, []string{"1", secretKey, "take", "counter", "5", "2", "60000", "0", "0", "0", "0", "0"}, eval[2:])

	// No number is above 2^53, and times are whole milliseconds, rounded up.
	srv.Forget()
	_, err = open(t, srv.URL).TakeOwing(t.Context(), costing(five, math.MaxInt), math.MaxInt, 1500*time.Microsecond)
	require.NoError(t, err)
	require.Equal(t, []string{"1", secretKey, "take", "counter", "5", "6", "60000", "0", "0", "5", "2", "0"}, srv.Commands()[0][2:])
}

// TestScriptOnStockServers: a server that is not Upstash refuses the first line. That
// costs a client one exchange more, once, and is reported once.
func TestScriptOnStockServers(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		srv.SetStock(true)
		for range 2 {
			var log journal
			s := open(t, srv.URL, logTo(&log))
			_, err := srv.Do("SCRIPT", "FLUSH")
			require.NoError(t, err)
			srv.Forget()
			hit := costing(stores.Hit{Key: "k", Limit: stores.FixedWindow(1000, time.Hour)}, 3)
			require.NoError(t, s.Reset(t.Context(), hit))
			srv.Forget()
			for i, want := range [][]string{{"EVALSHA", "EVAL", "EVAL"}, {"EVALSHA"}, {"EVALSHA"}} {
				d, err := s.Take(t.Context(), hit)
				require.NoError(t, err)
				require.Equal(t, 1000-3*(i+1), d.Remaining)
				require.Equal(t, want, names(srv))
			}
			_, err = srv.Do("SCRIPT", "FLUSH")
			require.NoError(t, err)
			_, err = s.Take(t.Context(), hit)
			require.NoError(t, err)
			require.Equal(t, []string{"EVALSHA", "EVAL"}, names(srv), "it is remembered")
			require.Equal(t, 1, strings.Count(log.String(), "does not know Upstash's flags"), log.String())
			require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		}
	})
}

// TestScriptNeverRuns: a server that has never heard of the script, whatever one brings
// it, has counted nothing, and gets one EVAL a decision.
func TestScriptNeverRuns(t *testing.T) {
	const text = "NOSCRIPT No matching script. Please use EVAL."
	for name, answer := range map[string]upstashtest.Fault{
		"slot":             upstashtest.Reply(200, "application/json", `[{"error":"`+text+`"}]`),
		"whole":            upstashtest.Reply(200, "application/json", `{"error":"`+text+`"}`),
		"status":           upstashtest.Reply(400, "application/json", `{"error":"`+text+`"}`),
		"Upstash's sister": upstashtest.Reply(200, "application/json", `[{"error":"NOSCRIPT"}]`),
	} {
		t.Run(name, func(t *testing.T) {
			srv := upstashtest.NewScripted(t, answer)
			s := open(t, srv.URL)
			for i := 1; i <= 3; i++ {
				_, err := s.Take(t.Context(), costing(five, 2))
				refusing.check(t, err)
				_, err = s.TakeOwing(t.Context(), five, 2, time.Second)
				refusing.check(t, err)
				refusing.check(t, s.Refund(t.Context(), five))
				require.Equal(t, 3*i, srv.Came("EVALSHA"))
				require.Equal(t, 3*i, srv.Came("EVAL"))
			}
			require.Zero(t, srv.Applied(""))

			srv.Script(answer, upstashtest.Good())
			d, err := s.Take(t.Context(), costing(five, 2))
			require.NoError(t, err)
			require.Equal(t, 3, d.Remaining)
			require.Equal(t, 1, srv.Applied(""))
		})
	}
}

// TestSecondExchangeFails: NOSCRIPT said that nothing was executed, so what becomes of
// the EVAL is all that counts.
func TestSecondExchangeFails(t *testing.T) {
	noScript := upstashtest.Reply(200, "application/json", `[{"error":"NOSCRIPT x"}]`)
	for name, tc := range map[string]struct {
		second upstashtest.Fault
		want   kind
		writes int
	}{
		"cut":            {upstashtest.Close(), unavailable, 0},
		"cut after work": {upstashtest.Lost(upstashtest.Close()), unavailable, 1},
		"refused":        {upstashtest.Reply(200, "application/json", `[{"error":"READONLY x"}]`), refusing, 0},
	} {
		t.Run(name, func(t *testing.T) {
			srv := upstashtest.NewScripted(t, noScript, tc.second)
			_, err := open(t, srv.URL).Take(t.Context(), costing(five, 2))
			tc.want.check(t, err)
			require.Equal(t, tc.writes, srv.Applied(""))
			require.Len(t, srv.Requests(), 2)
		})
	}
}

// TestScriptNotAllowed: a token or a server that lets no script run is no fault of the
// store as a whole: hits of cost 1 are counted as ever. It is reported.
func TestScriptNotAllowed(t *testing.T) {
	ofScript := kind{of: stores.ErrMisconfigured, definite: true, lasting: true, keyOnly: true}
	for _, text := range []string{
		"NOPERM this user has no permissions to run the 'evalsha' command or its subcommand",
		"ERR ACL failure in script: User x has no permissions to run the 'set' command script: 1234, on @user_script:60.",
		"ERR unknown command 'EVALSHA', with args beginning with: '" + secretKey + "'",
		"ERR Unknown Redis command called from script script: 1234, on @user_script:60.",
		"ERR Command is not available: 'EVALSHA'. See https://upstash.com",
	} {
		var log journal
		srv := upstashtest.New(t)
		s := open(t, srv.URL, logTo(&log))
		srv.SetSlotError("EVALSHA", text)
		for range 3 {
			_, err := s.Take(t.Context(), costing(five, 2))
			ofScript.check(t, err)
			_, err = s.TakeOwing(t.Context(), five, 1, time.Second)
			ofScript.check(t, err)
			ofScript.check(t, s.Refund(t.Context(), five))
			_, err = s.Take(t.Context(), five)
			require.NoError(t, err)
		}
		require.Zero(t, srv.Count("EVAL"))
		require.Equal(t, 1, strings.Count(log.String(), "the script is not run"), log.String())
		noSecret(t, log.String())
	}
}
