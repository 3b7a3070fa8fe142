package upstash_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
	"github.com/sallyport/sallyport/stores/upstash"
)

// behind is a store behind failover, and what is seen of it.
type behind struct {
	*failover.Store
	log     *journal
	changes []failover.Change
}

func newBehind(t *testing.T, s *upstash.Store, timeout time.Duration, log *journal) *behind {
	b := &behind{log: log}
	var err error
	b.Store, err = failover.New(s, failover.Config{
		Timeout: timeout, Logger: slog.New(slog.NewTextHandler(log, nil)),
		OnChange: func(c failover.Change) { b.changes = append(b.changes, c) },
	})
	require.NoError(t, err)
	return b
}

// patient is five with a window that no call of these tests, which may take a minute, outlasts.
var patient = stores.Hit{Key: five.Key, Limit: stores.FixedWindow(five.Limit.Quota, time.Hour)}

// requireLocal sends hits of one key, whose quota is five, to a store that fails each in the
// same way: memory decides each of them, lets the quota through and no more, and tells
// why without a secret; the breaker opens after five failures for as long as the kind
// asks for, unless the fault lies with the key.
func (b *behind) requireLocal(t *testing.T, want kind) {
	t.Helper()
	for i := range 8 {
		begun := time.Now()
		d, err := b.Take(t.Context(), patient)
		require.Less(t, time.Since(begun), time.Minute)
		require.NoError(t, err)
		require.Equal(t, stores.Local, d.Source, "hit %d", i)
		require.Equal(t, i < 5, d.Allowed, "hit %d: %v", i, d.Fault)
		require.ErrorIs(t, d.Fault, map[bool]error{true: stores.ErrHotKey, false: want.of}[want.keyOnly && i > 0])
		if i == 0 {
			want.check(t, d.Fault)
		}
		noSecret(t, d.Fault.Error())
	}
	noSecret(t, b.log.String())
	stats := b.Stats()
	require.Equal(t, failover.Stats{State: stats.State, Local: 8, Debts: stats.Debts, Memory: stats.Memory}, stats, "one path, each time")
	if want.keyOnly {
		require.Equal(t, failover.Closed, stats.State, "other keys are served")
		require.Empty(t, b.changes)
		require.Equal(t, 1, stats.Debts)
		return
	}
	require.Equal(t, failover.Open, stats.State)
	require.Len(t, b.changes, 1)
	most := 5 * time.Second
	if want.lasting || want.of == stores.ErrMisconfigured {
		most = time.Minute
		require.Equal(t, most, b.changes[0].For)
	}
	require.LessOrEqual(t, b.changes[0].For, most)
	require.GreaterOrEqual(t, b.changes[0].For, time.Second)
	noSecret(t, b.changes[0].Cause.Error())
	if want.definite {
		require.Equal(t, 1, stats.Debts, "the store will be told")
	} else {
		require.Zero(t, stats.Debts, "it may know already")
	}
	require.LessOrEqual(t, strings.Count(b.log.String(), "\n"), 3, b.log.String())
}

// refusesScripts are those of faultCases that say of a script that it is not to be
// had.
var refusesScripts = map[string]bool{"slots NOPERM": true, "slots unknown command": true, "slots not available": true}

// requireSameLimit is requireLocal without what depends on how far a request got. The
// last kind of fault is that of all further hits.
func (b *behind) requireSameLimit(t *testing.T, kinds ...error) {
	t.Helper()
	for i := range 8 {
		begun := time.Now()
		d, err := b.Take(t.Context(), patient)
		require.NoError(t, err)
		require.Equal(t, stores.Local, d.Source)
		require.Equal(t, i < 5, d.Allowed)
		require.ErrorIs(t, d.Fault, kinds[min(i, len(kinds)-1)])
		noSecret(t, d.Fault.Error())
		require.Less(t, time.Since(begun), 30*time.Second)
	}
	noSecret(t, b.log.String())
}

// TestFaultMatrixBehindFailover: whatever fault it is, exactly one path decides about each hit,
// no hit is written twice, and the limit holds.
func TestFaultMatrixBehindFailover(t *testing.T) {
	for _, tc := range faultCases() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			srv, log := upstashtest.NewScripted(t, tc.f), new(journal)
			limit := 30 * time.Second
			if silentFaults[tc.name] {
				limit = 50 * time.Millisecond
			}
			b := newBehind(t, open(t, srv.URL, timeout(time.Minute), logTo(log)), limit, log)
			if tc.want == counted {
				d, err := b.Take(t.Context(), patient)
				require.NoError(t, err)
				require.True(t, d.Allowed)
				require.Equal(t, stores.Shared, d.Source)
				require.NoError(t, d.Fault)
				require.Equal(t, failover.Stats{Shared: 1, Memory: b.Stats().Memory}, b.Stats())
				require.Equal(t, 1, srv.Came("INCR"))
				noSecret(t, log.String())
				return
			}
			switch {
			case silentFaults[tc.name]:
				// A busy machine may not even have dialled in that time: of these faults
				// alone it is not told here what is definite.
				b.requireSameLimit(t, stores.ErrUnavailable)
				require.Equal(t, failover.Open, b.Stats().State)
			case refusesScripts[tc.name]:
				// The second hit goes with what is owed, by script. That scripts are refused
				// is no fault of the database: other keys need none.
				b.requireSameLimit(t, stores.ErrMisconfigured, stores.ErrMisconfigured, stores.ErrHotKey)
				require.Equal(t, failover.Closed, b.Stats().State)
				require.LessOrEqual(t, len(srv.Requests()), 3, "no call while the key is hot; a script may be brought")
			default:
				b.requireLocal(t, tc.want)
				require.Len(t, srv.Requests(), map[bool]int{true: 1, false: 5}[tc.want.keyOnly], "no call while it is open, or the key hot")
			}
			// What is owed after a definite failure goes along by script.
			writes := srv.Came("INCR") + srv.Came("EVALSHA") + srv.Came("EVAL")
			require.LessOrEqual(t, writes, 5, "at most one for each hit that was asked about")
			require.LessOrEqual(t, srv.Applied("INCR")+srv.Applied("EVALSHA")+srv.Applied("EVAL"), writes)
		})
	}
}

// TestUnreachableBehindFailover: what never left is decided by memory, and owed.
func TestUnreachableBehindFailover(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := "http://" + ln.Addr().String()
	require.NoError(t, ln.Close())
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	dial := func(err error) func(*upstash.Config) {
		return func(c *upstash.Config) {
			c.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				if err == nil {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return nil, err
			}}
		}
	}
	for name, tc := range map[string]struct {
		url    string
		change func(*upstash.Config)
		limit  time.Duration
		want   kind
	}{
		"dial refused":   {closed, func(*upstash.Config) {}, time.Minute, refusing},
		"unknown CA":     {secure.URL, func(c *upstash.Config) { c.Transport = &http.Transport{TLSClientConfig: new(tls.Config)} }, time.Minute, configured},
		"no such host":   {"https://gone.example", dial(&net.DNSError{Err: "no such host", IsNotFound: true}), time.Minute, configured},
		"DNS fails":      {"https://gone.example", dial(&net.DNSError{Err: "server misbehaving", IsTemporary: true}), time.Minute, refusing},
		"swallowed dial": {"https://vpc.example", dial(nil), 50 * time.Millisecond, refusing},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(journal)
			newBehind(t, open(t, tc.url, timeout(time.Minute), logTo(log), tc.change), tc.limit, log).requireLocal(t, tc.want)
		})
	}
	for _, code := range []int{301, 302, 303, 307, 308} {
		elsewhere := upstashtest.NewScripted(t)
		srv, log := upstashtest.NewScripted(t, upstashtest.Redirect(code, elsewhere.URL+"/pipeline")), new(journal)
		newBehind(t, open(t, srv.URL, logTo(log)), time.Minute, log).requireLocal(t, configured)
		require.Empty(t, elsewhere.Requests())
		require.Len(t, srv.Requests(), 5)
	}
}

// TestDeadConnectionBehindFailover: one hit meets the connection that died, memory decides
// about that one, and the breaker stays closed. It is one INCR more at most.
func TestDeadConnectionBehindFailover(t *testing.T) {
	for name, f := range map[string]upstashtest.Fault{"cut": upstashtest.CutOnReuse(), "silent": upstashtest.HangOnReuse()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, log := upstashtest.NewScripted(t, f), new(journal)
			limit := 30 * time.Second
			if name == "silent" {
				limit = 300 * time.Millisecond
			}
			b := newBehind(t, open(t, srv.URL, timeout(time.Minute), logTo(log)), limit, log)
			for i := range 4 {
				d, err := b.Take(t.Context(), patient)
				require.NoError(t, err)
				require.True(t, d.Allowed)
				if name == "cut" {
					require.Equal(t, i%2 == 0, d.Source == stores.Shared, "hit %d: %v", i, d.Fault)
				}
			}
			require.LessOrEqual(t, srv.Came("INCR"), 4)
			require.Equal(t, failover.Closed, b.Stats().State)
			require.Empty(t, b.changes)
			noSecret(t, log.String())
		})
	}
}

// TestCallerBehindFailover: who has left beforehand is counted by nobody; who leaves
// meanwhile is counted once, by the store; and a request without time is decided by memory,
// without a call.
func TestCallerBehindFailover(t *testing.T) {
	srv, log := upstashtest.NewScripted(t, upstashtest.Good()), new(journal)
	b := newBehind(t, open(t, srv.URL, timeout(time.Minute), logTo(log)), time.Minute, log)
	gone, leave := context.WithCancel(t.Context())
	leave()
	past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{gone, past} {
		_, err := b.Take(ctx, patient)
		require.Equal(t, ctx.Err(), err)
	}
	require.Empty(t, srv.Requests())

	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if d, err := b.Take(short, patient); err == nil {
		require.Equal(t, stores.Local, d.Source)
		require.True(t, fault.Definite(d.Fault))
	}
	require.Empty(t, srv.Requests(), "100 ms are kept back for the caller")

	ctx, leave := context.WithCancel(t.Context())
	srv.Script(func(x *upstashtest.Exchange) bool { leave(); return upstashtest.Good()(x) })
	d, err := b.Take(ctx, patient)
	require.NoError(t, err)
	require.Equal(t, stores.Shared, d.Source)
	require.Equal(t, 1, srv.Applied("INCR")+srv.Applied("EVALSHA"), "with what is owed")
	require.Equal(t, failover.Closed, b.Stats().State)
	require.NotContains(t, log.String(), "fails")
}
