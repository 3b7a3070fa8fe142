package upstash_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

// TestRetryAfterIsTrue: who waits as long as he was told passes, and not before. The
// window starts at the key's first hit, wherever in time that is.
func TestRetryAfterIsTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := upstashtest.NewBubble(t)
		overBubble := func(c *upstash.Config) { c.Transport = srv.Transport() }
		s := open(t, srv.URL, overBubble)
		for run := range 100 {
			time.Sleep(time.Duration(run*37) * time.Millisecond)
			hit := stores.Hit{Key: fmt.Sprint("run:", run), Limit: stores.FixedWindow(3, 2*time.Second)}
			for i := range 3 {
				d, err := s.Take(t.Context(), hit)
				require.NoError(t, err)
				require.True(t, d.Allowed)
				require.Equal(t, min(2*time.Second, 2001*time.Millisecond-time.Duration(i)*100*time.Millisecond), d.ResetAfter)
				time.Sleep(100 * time.Millisecond)
			}
			d, certain, err := s.TakeCertain(t.Context(), hit)
			require.NoError(t, err)
			require.False(t, d.Allowed)
			require.True(t, certain)
			require.Equal(t, 1701*time.Millisecond, d.RetryAfter)

			// An instance that knows nothing says the same, and so does Peek.
			other := open(t, srv.URL, overBubble)
			d, certain, err = other.TakeCertain(t.Context(), hit)
			require.NoError(t, err)
			require.False(t, d.Allowed)
			require.True(t, certain)
			require.Equal(t, 1701*time.Millisecond, d.RetryAfter)
			d, err = other.Peek(t.Context(), hit)
			require.NoError(t, err)
			require.Equal(t, stores.Decision{RetryAfter: 1701 * time.Millisecond, ResetAfter: 1701 * time.Millisecond}, d)

			time.Sleep(1699 * time.Millisecond)
			d, err = s.Take(t.Context(), hit)
			require.NoError(t, err)
			require.False(t, d.Allowed)
			require.Equal(t, 2*time.Millisecond, d.RetryAfter)
			time.Sleep(d.RetryAfter)
			d, err = s.Take(t.Context(), hit)
			require.NoError(t, err)
			require.True(t, d.Allowed)
			require.Equal(t, 2, d.Remaining)
		}
	})
}

// TestWindowAlwaysCloses: a client at 20 hits a second for 30 s gets 5 in every second,
// and one at 4.9 a second is never refused.
func TestWindowAlwaysCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := upstashtest.NewBubble(t)
		s := open(t, srv.URL, func(c *upstash.Config) { c.Transport = srv.Transport() })
		passes := func(key string, pause, length time.Duration) (n int) {
			hit := stores.Hit{Key: key, Limit: stores.FixedWindow(5, time.Second)}
			for end := time.Now().Add(length); time.Now().Before(end); time.Sleep(pause) {
				d, err := s.Take(t.Context(), hit)
				require.NoError(t, err)
				if d.Allowed {
					n++
				}
			}
			return n
		}
		require.Equal(t, 150, passes("flood", 50*time.Millisecond, 30*time.Second))
		const slow = time.Second * 10 / 49
		require.Equal(t, int((time.Minute+slow-1)/slow), passes("steady", slow, time.Minute))
	})
}

// TestNoKeyWithoutExpiry: a key that lost its expiry, or never had one, gets it back
// with the next hit, and after one window the client passes.
func TestNoKeyWithoutExpiry(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		s := open(t, srv.URL)
		hit := stores.Hit{Key: "old", Limit: stores.FixedWindow(5, 100*time.Millisecond)}
		_, err := srv.Do("SET", "old", "999")
		require.NoError(t, err)
		d, certain, err := s.TakeCertain(t.Context(), hit)
		require.NoError(t, err)
		require.False(t, d.Allowed)
		require.False(t, certain)
		ttl, err := srv.Do("PTTL", "old")
		require.NoError(t, err)
		require.NotEqual(t, int64(-1), ttl)
		waitUntilGone(t, srv, "old")
		d, err = s.Take(t.Context(), hit)
		require.NoError(t, err)
		require.True(t, d.Allowed)
	})
}

func waitUntilGone(t *testing.T, srv *upstashtest.Server, key string) {
	t.Helper()
	if srv.Mini() != nil {
		srv.FastForward(time.Hour)
	}
	require.Eventually(t, func() bool {
		n, err := srv.Do("EXISTS", key)
		return err == nil && n == int64(0)
	}, 30*time.Second, 5*time.Millisecond)
}

// TestCutBetweenTheCommands: INCR reached Redis and PEXPIRE did not. The next hit, of
// whichever instance, heals it.
func TestCutBetweenTheCommands(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		var log journal
		s := open(t, srv.URL, logTo(&log))
		hit := stores.Hit{Key: secretKey, Limit: stores.FixedWindow(5, time.Minute)}
		srv.SetSlotError("PEXPIRE", "ERR cut '"+secretKey+"'")
		for i := range 6 {
			d, certain, err := s.TakeCertain(t.Context(), hit)
			require.NoError(t, err)
			require.Equal(t, i < 5, d.Allowed, "the count is the decision")
			require.Equal(t, time.Minute, d.ResetAfter)
			require.False(t, certain, "nobody knows the window's end")
		}
		require.Equal(t, 1, strings.Count(log.String(), "no expiry"), "reported once:\n%s", log.String())
		ttl, err := srv.Do("PTTL", hit.Key)
		require.NoError(t, err)
		require.EqualValues(t, -1, ttl)

		srv.SetSlotError("PEXPIRE", "")
		d, err := open(t, srv.URL).Take(t.Context(), hit)
		require.NoError(t, err)
		require.False(t, d.Allowed)
		ttl, err = srv.Do("PTTL", hit.Key)
		require.NoError(t, err)
		require.Positive(t, ttl)
		_, err = s.Take(t.Context(), hit)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(log.String(), "expiry again"), log.String())
		noSecret(t, log.String())
	})
}

// TestHitsAtTheEdge hits at the very end of windows, 500 times on a real server: no key
// is left without expiry, and no window admits more than the quota.
func TestHitsAtTheEdge(t *testing.T) {
	if upstash.RaceDetector {
		t.Skip("in real time: without the race detector")
	}
	srv := upstashtest.NewReal(t)
	const window = 20 * time.Millisecond
	var instances [4]*upstash.Store
	for i := range instances {
		instances[i] = open(t, srv.URL)
	}
	hit := stores.Hit{Key: "edge", Limit: stores.FixedWindow(2, window)}
	for range 500 {
		d, err := instances[0].Take(t.Context(), hit)
		require.NoError(t, err)
		if wait := d.ResetAfter - time.Millisecond; wait > 0 {
			time.Sleep(wait) // into the edge; where exactly does not matter
		}
		var wg sync.WaitGroup
		for _, s := range instances {
			wg.Go(func() {
				d, err := s.Take(t.Context(), hit)
				if err != nil || d.RetryAfter > window || !d.Allowed && d.RetryAfter < time.Millisecond {
					t.Errorf("%+v, %v", d, err)
				}
			})
		}
		wg.Wait()
		ttl, err := srv.Do("PTTL", "edge")
		require.NoError(t, err)
		require.NotEqual(t, int64(-1), ttl)
	}
}
