package failover

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// What OnChange does costs neither the shared store's time nor one of the calls that
// may be in flight: a slow hook would else make every probe fail, and one that asks
// the store would wait for itself.
func TestHookTakesNothingFromTheCall(t *testing.T) {
	hooks := map[string]func(r *rig){
		"slow": func(*rig) { time.Sleep(3 * time.Second) },
		"asks": func(r *rig) {
			start := time.Now()
			d, err := r.Take(context.Background(), stores.Hit{Key: "hook", Limit: stores.FixedWindow(1000, time.Hour)})
			if err != nil || time.Since(start) > 0 || r.Stats().State == Closed && d.Source != stores.Shared {
				panic("the hook had to wait")
			}
		},
	}
	for name, hook := range hooks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r *rig
				r = newRig(t, Config{MaxInFlight: 1, OnChange: func(Change) { hook(r) }})
				r.hit(t, "warm", five)
				r.trip(t, errDown)
				r.fake.set(func(f *fake) {
					f.fail = func(_ int, ctx context.Context, _ stores.Hit) error { return ctx.Err() }
				})
				time.Sleep(openMost)
				require.Equal(t, stores.Shared, r.hit(t, "k", five).Source)
				require.Equal(t, []State{Open, HalfOpen, Closed}, r.states())
			})
		})
	}
}

// A hook that panics takes its request with it, and nothing else.
func TestPanickingHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{OnChange: func(Change) { panic("hook") }})
		limit := stores.FixedWindow(50, time.Hour)
		hit := func() (d stores.Decision) {
			defer func() { _ = recover() }()
			return r.hit(t, "k", limit)
		}
		for range 3 {
			r.fake.failWith(errDown)
			for r.Stats().State == Closed {
				hit()
			}
			r.fake.failWith(nil)
			time.Sleep(openMost)
			hit() // the probe
			require.Equal(t, Closed, r.Stats().State)
			require.Equal(t, stores.Shared, hit().Source)
		}
		require.Empty(t, r.inFlight)
		require.Empty(t, r.fallback.payments.last)
		require.Zero(t, r.fallback.tables.Of(shapeOf(limit)).At(0).pending)
	})
}
