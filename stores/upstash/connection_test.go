package upstash_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

// TestDeadIdleConnections: the other ends of idle connections vanish without a word, as
// they do while an instance is frozen. The first hit pays its deadline, and all others
// get new connections.
func TestDeadIdleConnections(t *testing.T) {
	srv := upstashtest.NewScripted(t, upstashtest.Late(50*time.Millisecond))
	s := open(t, srv.URL, timeout(2*time.Second))
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { _, _ = s.Take(t.Context(), five) })
	}
	wg.Wait()
	require.Equal(t, 10, srv.Applied("INCR"))
	require.Greater(t, srv.Conns(), 1)
	old := srv.Conns()
	srv.Script(func(x *upstashtest.Exchange) bool {
		if x.Conn <= old {
			return upstashtest.Hang()(x)
		}
		return upstashtest.Good()(x)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := s.Take(ctx, five)
	unavailable.check(t, err)
	for range 10 {
		_, err := s.Take(t.Context(), five)
		require.NoError(t, err)
	}
}

// TestCutOnReuse: a connection that is cut after a request was written is ambiguous, and
// net/http must not send the request again.
func TestCutOnReuse(t *testing.T) {
	srv := upstashtest.NewScripted(t, upstashtest.CutOnReuse())
	s := open(t, srv.URL)
	_, err := s.Take(t.Context(), five)
	require.NoError(t, err)
	_, err = s.Take(t.Context(), five)
	unavailable.check(t, err)
	require.Equal(t, 2, srv.Came("INCR"), "one for each hit")
	_, err = s.Take(t.Context(), five)
	require.NoError(t, err)
}

// TestConnectionsAreReused: one connection serves hit after hit, refusals and error
// slots too, and a burst's connections stay for the next burst.
func TestConnectionsAreReused(t *testing.T) {
	srv := upstashtest.NewScripted(t)
	s := open(t, srv.URL)
	for i := range 20 {
		if i%3 == 2 {
			srv.Script(errorSlots("READONLY x"), upstashtest.Good())
		}
		_, _ = s.Take(t.Context(), five)
	}
	require.Equal(t, 1, srv.Conns())

	var here sync.WaitGroup
	burst := func() {
		here.Add(20)
		srv.Script(func(x *upstashtest.Exchange) bool { here.Done(); here.Wait(); return upstashtest.Good()(x) })
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { _, _ = s.Take(t.Context(), five) })
		}
		wg.Wait()
	}
	burst()
	require.Equal(t, 20, srv.Conns())
	burst()
	require.Equal(t, 20, srv.Conns())
}

// TestOnlyHTTP1: also towards a server that offers HTTP/2.
func TestOnlyHTTP1(t *testing.T) {
	s := open(t, "http://localhost")
	require.NotNil(t, s)
	tr := upstash.NewTransport(time.Second)
	require.True(t, tr.Protocols.HTTP1())
	require.False(t, tr.Protocols.HTTP2())
	require.False(t, tr.Protocols.UnencryptedHTTP2())
	require.False(t, tr.ForceAttemptHTTP2)
	require.True(t, tr.DisableCompression)
	require.Equal(t, 5*time.Second, tr.IdleConnTimeout)
	require.NotNil(t, tr.Proxy)
}

// TestStormOfHangUps: many callers leave while their requests are under way. Nothing is
// counted twice, and an honest hit among them is answered. The kit's guard does not let
// callers cancel; somebody else's may.
func TestStormOfHangUps(t *testing.T) {
	srv := upstashtest.New(t)
	s := open(t, srv.URL)
	honest := stores.Hit{Key: "honest", Limit: stores.FixedWindow(1000, time.Minute)}
	hostile := stores.Hit{Key: "hostile", Limit: stores.FixedWindow(5, time.Minute)}
	var sent, passed atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				var left sync.WaitGroup
				left.Go(cancel)
				sent.Add(1)
				if d, err := s.Take(ctx, hostile); err == nil && d.Allowed {
					passed.Add(1)
				}
				left.Wait()
			}
		})
	}
	for i := range 200 {
		d, err := s.Take(t.Context(), honest)
		if err != nil || d.Remaining != 999-i {
			t.Errorf("%d: %+v, %v", i, d, err)
		}
	}
	wg.Wait()
	require.LessOrEqual(t, passed.Load(), int64(5))
	require.LessOrEqual(t, int64(srv.Count("INCR")), sent.Load()+200)
}

// TestDown: an outage is definite while the port is closed, and over when it opens.
func TestDown(t *testing.T) {
	srv := upstashtest.New(t)
	s := open(t, srv.URL)
	_, err := s.Take(t.Context(), five)
	require.NoError(t, err)
	srv.SetDown(true)
	// The idle connection was closed; net/http may find out only when it writes.
	_, _ = s.Take(t.Context(), five)
	for range 3 {
		_, err = s.Take(t.Context(), five)
		refusing.check(t, err)
	}
	srv.SetDown(false)
	d, err := s.Take(t.Context(), five)
	require.NoError(t, err)
	require.GreaterOrEqual(t, d.Remaining, 2)
}
