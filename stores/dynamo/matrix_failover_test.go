package dynamo

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
)

// behind is a Store behind failover, and what is seen of it.
type behind struct {
	*failover.Store
	log     bytes.Buffer
	changes []failover.Change
}

func newBehind(t *testing.T, s *Store) *behind {
	b := new(behind)
	var err error
	b.Store, err = failover.New(s, failover.Config{
		Logger:   slog.New(slog.NewTextHandler(&b.log, nil)),
		OnChange: func(c failover.Change) { b.changes = append(b.changes, c) },
	})
	require.NoError(t, err)
	return b
}

func requireNoSecretIn(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{marker, "arn:", "123456789012", dynamotest.AccessKeyID, dynamotest.SecretAccessKey, dynamotest.SessionToken, "REQUESTID"} {
		require.NotContains(t, text, secret)
	}
}

// Whatever fault it is, one path decides about each hit, no write is made twice, the limit
// holds, the breaker opens for as long as the kind asks for, and when the table is back it is
// asked again and told what it missed.
func TestFaultMatrixBehindFailover(t *testing.T) {
	for _, tt := range faultCases() {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testBehindFailover(t, tt) })
		})
	}
	unreachable := faultCase{kind: stores.ErrUnavailable, definite: true}
	for name, set := range map[string]func(*dynamotest.Server, bool){"refused": (*dynamotest.Server).SetDown, "blackholed": (*dynamotest.Server).SetBlackhole} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := dynamotest.New(t)
				set(server, true)
				testHits(t, server, newBehind(t, newStore(t, server.Client())), unreachable, func() { set(server, false) })
			})
		})
	}
}

func testBehindFailover(t *testing.T, tt faultCase) {
	server := dynamotest.New(t)
	server.SetFault(dynamotest.Fault{Do: tt.do})
	testHits(t, server, newBehind(t, newStore(t, server.Client())), tt, server.ClearFaults)
}

func testHits(t *testing.T, server *dynamotest.Server, b *behind, tt faultCase, heal func()) {
	h := hit(marker, 5, 10*time.Minute)
	// A lie shows an item that makes no sense, or one that makes another: a fault of the key.
	lie, allowed := strings.HasPrefix(tt.name, "lie: "), 0
	for i := range 8 {
		begun, calls := time.Now(), server.Calls("")
		d, err := b.Take(t.Context(), h)
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(begun), 2*time.Second)
		if d.Allowed {
			allowed++
		}
		if !lie || i == 0 {
			require.Equal(t, stores.Local, d.Source, "hit %d", i)
			require.Equal(t, i < 5, d.Allowed, "hit %d: %v", i, d.Fault)
		}
		if d.Source == stores.Local {
			requireSecretless(t, d.Fault)
		}
		if i == 0 {
			require.ErrorIs(t, d.Fault, tt.kind)
		}
		require.LessOrEqual(t, server.Calls("")-calls, maxCalls+2, "a debt costs up to two calls more, once")
		w, _ := stored(t, server, h.Key)
		require.LessOrEqual(t, w.n, int64(min(i+1, 5)), "each hit is written once at most, and no level is above the quota")
	}
	requireNoSecretIn(t, b.log.String())
	stats := b.Stats()
	require.Equal(t, uint64(8), stats.Shared+stats.Local+stats.Remembered, "one path, each time")
	require.LessOrEqual(t, allowed, 5)
	require.LessOrEqual(t, strings.Count(b.log.String(), "\n"), 3, b.log.String())
	switch {
	case tt.keyOnly:
		require.Equal(t, 1, server.Calls(""))
		require.Equal(t, failover.Closed, stats.State, "other keys are served")
		require.Empty(t, b.changes)
	case !lie:
		require.Equal(t, failover.Open, stats.State)
		require.Len(t, b.changes, 1)
		require.Equal(t, tt.lasting, b.changes[0].For == time.Minute)
		require.True(t, b.changes[0].For >= time.Second && (tt.lasting || b.changes[0].For <= 5*time.Second))
		requireSecretless(t, b.changes[0].Cause)
	}
	if tt.definite {
		require.Equal(t, 1, stats.Debts, "the table will be told")
	}

	heal()
	time.Sleep(time.Minute)
	d, err := b.Take(t.Context(), hit("other", 5, 10*time.Minute))
	require.NoError(t, err)
	require.Equal(t, stores.Shared, d.Source)
	require.Equal(t, failover.Closed, b.Stats().State)
	for range 3 {
		d, err = b.Take(t.Context(), h)
		require.NoError(t, err)
		require.True(t, !d.Allowed || allowed < 5, "what was let through is not forgotten")
	}
	if !lie { // there some hits were certainly not counted, and of others one can't know
		require.Zero(t, b.Stats().Debts)
	}
	w, there := stored(t, server, h.Key)
	require.LessOrEqual(t, w.n, int64(5))
	if tt.definite {
		require.True(t, there)
		require.Equal(t, int64(5), w.n, "paid, to the quota")
	}
	time.Sleep(10 * time.Minute)
	for i := range 7 {
		d, err = b.Take(t.Context(), h)
		require.NoError(t, err)
		require.Equal(t, stores.Remembered == d.Source || stores.Shared == d.Source, true)
		require.Equal(t, i < 5, d.Allowed, "a window of its own, hit %d", i)
	}
}

// A connection that died unnoticed, while the instance was frozen, costs nothing: no
// fallback, no second count, no open breaker.
func TestDeadConnectionBehindFailover(t *testing.T) {
	server := dynamotest.New(t)
	var dials atomic.Int32
	var dead atomic.Bool
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if dials.Add(1) == 1 {
			return &deadConn{Conn: conn, dead: &dead}, err
		}
		return conn, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	b, h := newBehind(t, newStore(t, dynamotest.NewClient(server.Listen(t), transport))), hit(marker, 5, time.Hour)
	for i := range 6 {
		dead.Store(i > 0)
		d, err := b.Take(t.Context(), h)
		require.NoError(t, err)
		require.Equal(t, i < 5, d.Allowed)
	}
	require.Zero(t, b.Stats().Local)
	require.Empty(t, b.changes)
	w, _ := stored(t, server, h.Key)
	require.Equal(t, int64(5), w.n)
}

// A failed condition is an answer: the fallback has no say, and holds nothing against the
// table.
func TestRefusalsBehindFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		server.SetFault(dynamotest.Fault{Do: dynamotest.Slow(450 * time.Millisecond)})
		b, allowed := newBehind(t, newStore(t, server.Client())), 0
		for range 50 {
			d, err := b.Take(t.Context(), hit(marker, 2, time.Hour))
			require.NoError(t, err)
			if d.Allowed {
				allowed++
			}
		}
		require.Equal(t, 2, allowed)
		require.Zero(t, b.Stats().Local)
		require.Equal(t, failover.Closed, b.Stats().State)
		require.LessOrEqual(t, server.Calls(""), 4, "and the refusal is remembered")
	})
}
