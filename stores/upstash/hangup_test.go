package upstash_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
	"github.com/sallyport/sallyport/stores/upstash"
)

// accepting counts the connections that a listener hands out.
type accepting struct {
	net.Listener
	n atomic.Int64
}

func (a *accepting) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err == nil {
		a.n.Add(1)
	}
	return c, err
}

// storm is a database behind TLS that takes 10 ms to answer, and 64 clients at a time
// that leave 3 ms after they asked.
type storm struct {
	srv      *upstashtest.Server
	accepted *accepting
	store    *failover.Store
	asked    atomic.Int64 // hits that were decided
	left     atomic.Int64 // of them, those whose client had gone by then
}

const leavers = 64

func newStorm(t testing.TB) *storm {
	t.Helper()
	s := &storm{srv: upstashtest.New(t)}
	s.srv.SetDelay(10 * time.Millisecond)
	// The first requests wait for each other, so that there are as many connections as
	// are needed at a time. net/http dials on when one comes free meanwhile, and would
	// have more of them in the end than that.
	var here sync.WaitGroup
	here.Add(leavers + 1)
	var requests atomic.Int64
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) <= leavers+1 {
			here.Done()
			here.Wait()
		}
		s.srv.ServeHTTP(w, r)
	}))
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.accepted = &accepting{Listener: web.Listener}
	web.Listener = s.accepted
	web.StartTLS()
	t.Cleanup(web.Close)

	tr := upstash.NewTransport(30 * time.Second)
	tr.IdleConnTimeout = 0 // a slow machine closes none
	tr.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
	tr.TLSClientConfig.RootCAs.AddCert(web.Certificate())
	t.Cleanup(tr.CloseIdleConnections)
	shared := open(t, web.URL, timeout(30*time.Second), func(c *upstash.Config) { c.Transport = tr })
	var err error
	s.store, err = failover.New(shared, failover.Config{Timeout: 30 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range leavers + 1 {
		wg.Go(func() {
			if _, err := s.hit(context.Background(), stores.Hit{Key: "first", Limit: stores.FixedWindow(1000, time.Hour)}, 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return s
}

// hit asks for a client that leaves after so long, if he leaves.
func (s *storm) hit(ctx context.Context, hit stores.Hit, leaves time.Duration) (stores.Decision, error) {
	if leaves > 0 {
		var leave context.CancelFunc
		ctx, leave = context.WithCancel(ctx)
		defer leave()
		defer time.AfterFunc(leaves, leave).Stop()
	}
	d, err := s.store.Take(ctx, hit)
	switch {
	case err == nil:
		s.asked.Add(1)
		if ctx.Err() != nil {
			s.left.Add(1)
		}
	case leaves > 0 && errors.Is(err, context.Canceled):
		err = nil // he left before he was heard, and nothing was counted
	}
	return d, err
}

// rage has every leaver ask by so many hits on keys of its own, until told to stop.
func (s *storm) rage(ctx context.Context, t testing.TB, hits int) *sync.WaitGroup {
	var wg sync.WaitGroup
	for i := range leavers {
		wg.Go(func() {
			for n := 0; n < hits && ctx.Err() == nil; n++ {
				// Every other one by the script.
				hit := stores.Hit{Key: "leaver:" + strconv.Itoa(i%2), Limit: stores.FixedWindow(1_000_000, time.Hour), Cost: 1 + i%2}
				d, err := s.hit(context.WithoutCancel(ctx), hit, 3*time.Millisecond)
				if err != nil || d.Fault != nil {
					t.Errorf("%+v, %v", d, err)
				}
			}
		})
	}
	return &wg
}

// TestHangUps: clients who leave while their hits are counted cost nobody a connection,
// a decision or a count. No verdict here depends on time, but for the leaving itself.
func TestHangUps(t *testing.T) {
	s := newStorm(t)
	rest := s.rage(t.Context(), t, 30)
	honest := stores.Hit{Key: "honest", Limit: stores.FixedWindow(1000, time.Hour)}
	for i := range 50 {
		d, err := s.hit(t.Context(), honest, 0)
		require.NoError(t, err)
		require.NoError(t, d.Fault)
		require.Equal(t, 999-i, d.Remaining)
	}
	rest.Wait()
	require.Positive(t, s.left.Load(), "somebody did leave")
	require.EqualValues(t, leavers+1, s.accepted.n.Load(), "one connection for each who asks at a time")
	stats := s.store.Stats()
	require.Equal(t, failover.Closed, stats.State)
	require.Zero(t, stats.Local)
	used := int64(0)
	for key, cost := range map[string]int64{"first": 1, "honest": 1, "leaver:0": 1, "leaver:1": 2} {
		value, _ := raw(t, s.srv, key)
		n, err := strconv.ParseInt(value, 10, 64)
		require.NoError(t, err)
		require.Zero(t, n%cost)
		used += n / cost
	}
	require.Equal(t, s.asked.Load(), used, "each is counted once")
	t.Logf("%d hits, of which %d were left alone, over %d connections", s.asked.Load(), s.left.Load(), s.accepted.n.Load())
}

// BenchmarkHangUps is what an honest client waits for a decision of 10 ms: alone, and
// beside those who leave. It prints the median.
func BenchmarkHangUps(b *testing.B) {
	for name, hits := range map[string]int{"alone": 0, "beside 64 who leave": 1 << 30} {
		b.Run(name, func(b *testing.B) {
			s := newStorm(b)
			ctx, stop := context.WithCancel(context.Background())
			rest := s.rage(ctx, b, hits)
			honest := stores.Hit{Key: "honest", Limit: stores.FixedWindow(1<<40, time.Hour)}
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := s.hit(context.Background(), honest, 0); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			stop()
			rest.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e6, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100])/1e6, "p99-ms")
			b.ReportMetric(float64(s.accepted.n.Load()), "connections")
		})
	}
}
