package failover

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// OutageAllow is for a shared store that is down, which no client can bring about. What
// a client can bring about (a hot key, more calls at once than MaxInFlight, a request that has
// spent its time) must not be a way around the limit: memory decides.
func TestPushingIsNoOutage(t *testing.T) {
	attacks := map[string]func(t *testing.T, r *rig, hit stores.Hit) int{
		"a key made hot": func(t *testing.T, r *rig, hit stores.Hit) int {
			r.fake.failWith(errOneKey)
			return passed(t, r, context.Background(), hit, 100)
		},
		"more calls than may be in flight": func(t *testing.T, r *rig, hit stores.Hit) int {
			r.fake.set(func(f *fake) { f.delay = 400 * time.Millisecond })
			var all atomic.Int64
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() { all.Add(int64(passed(t, r, context.Background(), hit, 1))) })
			}
			wg.Wait()
			return int(all.Load())
		},
		"no time left": func(t *testing.T, r *rig, hit stores.Hit) int {
			ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
			defer cancel()
			return passed(t, r, ctx, hit, 100)
		},
		"too little time left": func(t *testing.T, r *rig, hit stores.Hit) int {
			r.fake.set(func(f *fake) { f.delay = 300 * time.Millisecond })
			n := 0
			for range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				n += passed(t, r, ctx, hit, 1)
				cancel()
			}
			return n
		},
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{MaxInFlight: 4})
				r.hit(t, "warm", five)
				hit := stores.Hit{Key: "k", Limit: stores.FixedWindow(10, time.Hour), Outage: stores.OutageAllow}
				require.LessOrEqual(t, attack(t, r, hit), 10)
				require.Equal(t, Closed, r.Stats().State)
				require.Zero(t, r.Stats().None)
			})
		})
	}
}

// passed sends a hit so many times and counts what is let through.
func passed(t testing.TB, r *rig, ctx context.Context, hit stores.Hit, times int) int {
	n := 0
	for range times {
		d, err := r.Take(ctx, hit)
		if err != nil {
			t.Error(err)
			return n
		}
		if d.Allowed {
			n++
		}
	}
	return n
}

// A shared store that is slow only until its connections are open again (a handshake
// that takes longer than Timeout) is found again: a probe has the time to dial.
func TestProbeHasTimeToDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.hit(t, "warm", five)
		r.trip(t, errDown)
		dialled := false
		r.fake.set(func(f *fake) {
			f.fail = func(_ int, ctx context.Context, _ stores.Hit) error {
				if !dialled {
					select {
					case <-time.After(800 * time.Millisecond):
						dialled = true
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				return nil
			}
		})
		for range 20 {
			time.Sleep(openMost)
			r.hit(t, "k", five)
		}
		require.Equal(t, Closed, r.Stats().State)
	})
}

// In a black hole 10,000 requests at once are all answered within the first call's
// time, memory holds each key to its quota, and nothing stays.
func TestCrowdInABlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.fake.set(func(f *fake) { f.delay = time.Hour })
		const keys = 100
		var allowed [keys]atomic.Int64
		var wg sync.WaitGroup
		start := time.Now()
		for i := range 10_000 {
			wg.Go(func() {
				if r.hit(t, "k"+strconv.Itoa(i%keys), five).Allowed {
					allowed[i%keys].Add(1)
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, time.Since(start), freshLimit)
		for i := range allowed {
			require.Equal(t, int64(5), allowed[i].Load(), "an honest client gets its quota, and no one more")
		}
		require.LessOrEqual(t, r.fake.most, defaultMaxInFlight)
		require.Empty(t, r.inFlight)
		require.Equal(t, Open, r.Stats().State)
		for i := range r.fallback.tables.Of(shapeOf(five)).Len() {
			require.Zero(t, r.fallback.tables.Of(shapeOf(five)).At(i).pending)
		}
	})
}

func shapeOf(l stores.Limit) shape { return shape{l.Algorithm, l.Window, l.Block} }
