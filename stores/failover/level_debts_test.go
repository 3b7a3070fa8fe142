package failover

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// costs takes a hit of this cost.
func (r *rig) costs(t testing.TB, key string, limit stores.Limit, cost int) stores.Decision {
	t.Helper()
	d, err := r.Take(t.Context(), stores.Hit{Key: key, Limit: limit, Cost: cost})
	require.NoError(t, err)
	return d
}

// What is let through in one local window is owed until that ends, though something of the
// window before is owed still.
func TestDebtOfTheNextBlockedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := stores.FixedWindow(5, 10*time.Second).BlockFor(time.Second)
		r := newRig(t, Config{})
		require.True(t, r.hit(t, "k", limit).Allowed)
		time.Sleep(8 * time.Second)
		r.trip(t, errDown)
		require.Equal(t, stores.Local, r.hit(t, "k", limit).Source)
		time.Sleep(3 * time.Second)
		for range 4 {
			d := r.hit(t, "k", limit)
			require.True(t, d.Allowed)
			require.Equal(t, stores.Local, d.Source)
		}
		r.fake.failWith(nil)
		time.Sleep(7500 * time.Millisecond)
		require.True(t, r.hit(t, "k", limit).Allowed)
		d := r.hit(t, "k", limit)
		require.False(t, d.Allowed, "five were let through in this window")
		require.Equal(t, stores.Shared, d.Source)
	})
}

// A debt that comes while an earlier one fills a log, all of it with the stamp of its
// last event, is cut there. This instance knows better.
func TestPaymentCutByAnEarlierOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := stores.SlidingLog(5, 10*time.Second)
		r := newRig(t, Config{})
		local := func(cost int) {
			r.fake.failWith(errDown)
			d := r.costs(t, "k", limit, cost)
			require.Equal(t, stores.Local, d.Source)
			require.True(t, d.Allowed)
			r.fake.failWith(nil)
		}
		local(2)
		time.Sleep(9 * time.Second)
		local(2)
		time.Sleep(2 * time.Second)
		local(1) // the first two are over, but the debt counts by windows
		time.Sleep(500 * time.Millisecond)
		require.False(t, r.hit(t, "k", limit).Allowed, "five with the stamp of the last")
		time.Sleep(9 * time.Second)
		local(4)
		time.Sleep(300 * time.Millisecond)
		require.False(t, r.hit(t, "k", limit).Allowed)
		time.Sleep(300 * time.Millisecond)
		let := 4
		for range 5 {
			if r.hit(t, "k", limit).Allowed {
				let++
			}
		}
		require.LessOrEqual(t, let, limit.Quota, "in less than a second")
	})
}

// What a hit on its way has left behind is kept, whatever other keys come meanwhile: an
// answer that was overtaken by another one is not the whole truth.
func TestNewKeysBesideHitsOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := stores.TokenBucket(5, time.Minute)
		r := newRig(t, Config{})
		k := r.Store.fallback.of(&stores.Hit{Key: "k", Limit: limit, Cost: 2})
		now := r.Store.clock.Now()
		_, _, err := k.send(now, now+int64(time.Second))
		require.NoError(t, err)
		for i := range 1000 {
			r.hit(t, fmt.Sprint("other", i), limit)
		}
		k.level.table.Lock()
		l, _ := k.level.find()
		require.NotNil(t, l)
		require.Equal(t, int64(2), l.pending)
		k.level.table.Unlock()
		k.failed(debt{}, true, r.Store.clock.Now())
		k.level.table.Lock()
		_, i := k.level.find()
		require.LessOrEqual(t, k.level.table.Until(i), r.Store.clock.Now(), "nothing is left of it")
		k.level.table.Unlock()
	})
}

// A hit with a lower quota, as of a smaller plan, neither pays off a debt for less than it
// is nor hides what was used.
func TestLowerQuotaBetween(t *testing.T) {
	for _, large := range []stores.Limit{
		stores.FixedWindow(5, time.Minute), stores.SlidingWindow(5, time.Minute),
		stores.SlidingLog(5, time.Minute), stores.TokenBucket(5, time.Minute),
	} {
		small := large
		small.Quota = 2
		for _, when := range []string{"before the outage", "behind it"} {
			t.Run(large.String()+" "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, Config{})
					if when == "behind it" {
						r.trip(t, errDown)
					}
					for range 4 {
						require.True(t, r.hit(t, "k", large).Allowed)
					}
					if when == "behind it" {
						r.fake.failWith(nil)
						time.Sleep(openMost)
					}
					require.False(t, r.hit(t, "k", small).Allowed)
					if when != "behind it" {
						r.trip(t, errDown)
					}
					let := 4
					for range 10 {
						if r.hit(t, "k", large).Allowed {
							let++
						}
					}
					require.LessOrEqual(t, let, large.Quota)
				})
			})
		}
	}
}

// A stranger's batcher that goes on behind a refusal leaves nothing on its way here.
func TestBatcherThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &goingOn{newFake(t)}
		s, err := New(b, Config{})
		require.NoError(t, err)
		one := stores.Cooldown(time.Minute)
		require.Equal(t, "[shared shared]", takeEach(t, s, []stores.Hit{{Key: "a", Limit: one}, {Key: "z", Limit: one}}, nil))
		s.refusals = newRefusals(0)
		hits := []stores.Hit{{Key: "a", Limit: one}, {Key: "b", Limit: five}, {Key: "c", Limit: five}}
		require.Equal(t, "[shared refused]", takeEach(t, s, hits, nil))
		for _, key := range []string{"b", "c"} {
			k := s.fallback.of(&stores.Hit{Key: key, Limit: five})
			if i := k.window.table.Find(k.window.hash); i >= 0 {
				require.Zero(t, k.window.table.At(i).pending, key)
			}
		}
	})
}

type goingOn struct{ *fake }

func (g *goingOn) TakeAll(ctx context.Context, hits []stores.Hit, out []stores.Decision) (int, error) {
	for i, h := range hits {
		d, err := g.mem.Take(ctx, h)
		if err != nil {
			return i, err
		}
		out[i] = d
	}
	return len(hits), nil
}
