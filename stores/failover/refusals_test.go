package failover

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// A client that hammers through a window costs its quota and a few calls more.
func TestHammering(t *testing.T) {
	for _, window := range []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour} {
		t.Run(window.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{})
				limit := stores.FixedWindow(5, window)
				start, passed := time.Now(), 0
				for time.Since(start) < window {
					if r.hit(t, "k", limit).Allowed {
						passed++
					}
					time.Sleep(100 * time.Millisecond)
				}
				require.Equal(t, 5, passed)
				calls, _ := r.fake.count()
				most := 2
				for rest := window; rest > holdLeast; rest /= 2 {
					most++
				}
				require.LessOrEqual(t, calls-5, most)
				require.True(t, r.hit(t, "k", limit).Allowed, "the window's end lets it in again")
			})
		})
	}
}

// A thousand addresses that hammer cost each what one does.
func TestManyHammer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		limit := stores.FixedWindow(5, 10*time.Minute)
		const addresses = 1000
		start, passed := time.Now(), 0
		for time.Since(start) < limit.Window {
			for i := range addresses {
				if r.hit(t, "k"+strconv.Itoa(i), limit).Allowed {
					passed++
				}
			}
			time.Sleep(2 * time.Second)
		}
		require.Equal(t, 5*addresses, passed)
		calls, _ := r.fake.count()
		refused := float64(calls-passed) / addresses
		t.Logf("%d hits, %.1f calls an address beyond the quota", 300*addresses, refused)
		require.LessOrEqual(t, refused, 8.0, "log2(600/10)+1 is 6.9")
	})
}

func TestRememberedNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		for range 6 {
			r.hit(t, "k", five)
		}
		time.Sleep(7 * time.Second)
		d := r.hit(t, "k", five)
		require.Equal(t, stores.Decision{
			Source:     stores.Remembered,
			RetryAfter: 53 * time.Second,
			ResetAfter: 53 * time.Second,
		}, d)
	})
}

// A refusal answers hits of its cost or more, for its own limit, and no others.
func TestRememberedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		take := func(cost, quota int) stores.Decision {
			d, err := r.Take(t.Context(), stores.Hit{Key: "k", Limit: stores.FixedWindow(quota, time.Minute), Cost: cost})
			require.NoError(t, err)
			return d
		}
		require.True(t, take(3, 5).Allowed)
		require.False(t, take(4, 5).Allowed)
		require.Equal(t, stores.Remembered, take(4, 5).Source)
		require.Equal(t, stores.Remembered, take(5, 5).Source)
		d := take(3, 5)
		require.Equal(t, stores.Shared, d.Source, "a cheaper hit may pass")
		require.False(t, d.Allowed)
		require.Equal(t, stores.Remembered, take(3, 5).Source)
		require.Equal(t, stores.Remembered, take(4, 5).Source)
		require.True(t, take(2, 5).Allowed)
		require.False(t, take(1, 5).Allowed)
		require.Equal(t, stores.Remembered, take(1, 5).Source)
		d = take(1, 6)
		require.Equal(t, stores.Shared, d.Source, "a raised quota counts at once")
		require.True(t, d.Allowed)
	})
}

// What an operator resets elsewhere is seen here within half of what was told.
func TestResetElsewhere(t *testing.T) {
	for window, most := range map[time.Duration]time.Duration{time.Hour: 30 * time.Minute, 15 * time.Second: holdLeast} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{})
			limit := stores.FixedWindow(1, window)
			r.hit(t, "k", limit)
			r.hit(t, "k", limit)
			require.NoError(t, r.fake.mem.Reset(t.Context(), stores.Hit{Key: "k", Limit: limit}))
			time.Sleep(most - time.Second)
			require.False(t, r.hit(t, "k", limit).Allowed)
			time.Sleep(time.Second)
			require.True(t, r.hit(t, "k", limit).Allowed)
		})
	}
}

func TestUncertainIsNotRemembered(t *testing.T) {
	r := newRig(t, Config{})
	r.fake.set(func(f *fake) { f.unsure = true })
	for range 8 {
		require.Equal(t, stores.Shared, r.hit(t, "k", five).Source)
	}
}

func TestFallbacksRefusalsAreNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.trip(t, errDown)
		for range 10 {
			require.Equal(t, stores.Local, r.hit(t, "k", five).Source)
		}
		r.fake.failWith(nil)
		time.Sleep(openMost)
		require.Equal(t, stores.Shared, r.hit(t, "k", five).Source)
	})
}

func TestResetAndRefundDrop(t *testing.T) {
	for name, do := range map[string]func(*rig, stores.Hit) error{
		"reset":  func(r *rig, hit stores.Hit) error { return r.Reset(t.Context(), hit) },
		"refund": func(r *rig, hit stores.Hit) error { return r.Refund(t.Context(), hit) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			for range 7 {
				r.hit(t, "k", five)
			}
			require.NoError(t, do(r, stores.Hit{Key: "k", Limit: five}))
			d := r.hit(t, "k", five)
			require.True(t, d.Allowed)
			require.Equal(t, stores.Shared, d.Source)
		})
	}
}

// An answer that was on its way while the key was reset is not remembered.
func TestResetWhileARefusalIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		for range 5 {
			r.hit(t, "k", five)
		}
		r.fake.set(func(f *fake) { f.late = 200 * time.Millisecond })
		done := make(chan stores.Decision)
		go func() { done <- r.hit(t, "k", five) }()
		synctest.Wait()
		require.NoError(t, r.Reset(t.Context(), stores.Hit{Key: "k", Limit: five}))
		d := <-done
		require.False(t, d.Allowed)
		require.Equal(t, stores.Shared, d.Source)
		r.fake.failWith(errDown)
		require.True(t, r.hit(t, "k", five).Allowed, "nor does it fill the fallback's record")
		r.fake.failWith(nil)
		require.True(t, r.hit(t, "k", five).Allowed)
	})
}

// Bounded, and a key that goes on hammering stays while others come and go.
func TestRefusalsAreBounded(t *testing.T) {
	r := newRig(t, Config{MaxKeys: 50})
	one := stores.FixedWindow(1, time.Hour)
	for i := range 2000 {
		for range 2 {
			r.hit(t, "k"+strconv.Itoa(i), one)
		}
		if i > 0 {
			require.Equal(t, stores.Remembered, r.hit(t, "k0", one).Source, "after %d others", i)
		}
	}
	require.LessOrEqual(t, r.refusals.table.Len(), 50)
}

// The refusal of a later policy is found before an earlier one is charged.
func TestChain(t *testing.T) {
	r := newRig(t, Config{})
	mine := stores.Hit{Key: "mine", Limit: stores.FixedWindow(2, time.Minute)}
	all := stores.Hit{Key: "all", Limit: stores.FixedWindow(100, time.Minute)}
	last := stores.Hit{Key: "last", Limit: stores.FixedWindow(100, time.Minute)}
	chain := func(hits ...stores.Hit) ([]stores.Decision, int) {
		out := make([]stores.Decision, len(hits))
		n, err := r.TakeAll(t.Context(), hits, out)
		require.NoError(t, err)
		return out[:n], n
	}
	for range 2 {
		_, n := chain(all, mine, last)
		require.Equal(t, 3, n)
	}
	out, n := chain(all, mine, last)
	require.Equal(t, 2, n, "a refusal ends the chain")
	require.True(t, out[0].Allowed)
	require.Equal(t, 97, out[0].Remaining)
	require.False(t, out[1].Allowed)
	for range 50 {
		out, n = chain(all, mine, last)
		require.Equal(t, 2, n)
		require.Equal(t, stores.Decision{Allowed: true, Source: stores.None}, out[0])
		require.Equal(t, stores.Remembered, out[1].Source)
	}
	out, _ = chain(all)
	require.Equal(t, 96, out[0].Remaining, "a blocked client did not burn what others share")
	out, _ = chain(last)
	require.Equal(t, 97, out[0].Remaining)
}

func TestOpenChain(t *testing.T) {
	r := newRig(t, Config{})
	hits := []stores.Hit{
		{Key: "signal", Limit: stores.FixedWindow(1, time.Minute)},
		{Key: "enforced", Limit: stores.FixedWindow(3, time.Minute)},
	}
	open := []bool{true, false}
	out := make([]stores.Decision, 2)
	for i := range 3 {
		n, err := r.TakeEach(t.Context(), hits, open, out)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Equal(t, i == 0, out[0].Allowed)
		require.Equal(t, stores.Shared, out[0].Source, "an open one is never answered from memory")
		require.True(t, out[1].Allowed)
	}
	for _, bad := range []struct{ open, out int }{{1, 2}, {2, 1}} {
		_, err := r.TakeEach(t.Context(), hits, open[:bad.open], out[:bad.out])
		require.ErrorIs(t, err, stores.ErrInvalid)
	}
	n, err := r.TakeEach(t.Context(), nil, nil, nil)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestChainWithAnInvalidHitChargesNothing(t *testing.T) {
	r := newRig(t, Config{})
	hits := []stores.Hit{{Key: "a", Limit: five}, {Key: "", Limit: five}}
	n, err := r.TakeAll(t.Context(), hits, make([]stores.Decision, 2))
	require.ErrorIs(t, err, stores.ErrInvalid)
	require.Zero(t, n)
	require.Equal(t, 4, r.hit(t, "a", five).Remaining)
}

// When the store fails between two hits of a chain, each has one path still.
func TestChainOverAFailure(t *testing.T) {
	r := newRig(t, Config{})
	r.fake.set(func(f *fake) { f.fail = everySecond })
	hits := []stores.Hit{{Key: "a", Limit: five}, {Key: "b", Limit: five}, {Key: "c", Limit: five}}
	out := make([]stores.Decision, 3)
	n, err := r.TakeAll(t.Context(), hits, out)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Equal(t, "[shared local shared]", fmt.Sprint([]stores.Source{out[0].Source, out[1].Source, out[2].Source}))
}

// Who can choose among plans by turns has each of them remembered, and a Reset or a Refund
// of one frees them all.
func TestHammeringWithPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		plans := []stores.Limit{stores.FixedWindow(5, 10*time.Minute), stores.FixedWindow(8, 10*time.Minute), stores.FixedWindow(6, 10*time.Minute)}
		for range 8 {
			require.True(t, r.hit(t, "k", plans[1]).Allowed)
		}
		before, _ := r.fake.count()
		for i := range 9 * 60 * 10 {
			require.False(t, r.hit(t, "k", plans[i%3]).Allowed)
			time.Sleep(100 * time.Millisecond)
		}
		calls, _ := r.fake.count()
		require.LessOrEqual(t, calls-before, 3*7, "about log2(600 s / 10 s)+1 for each plan")
		require.NoError(t, r.Refund(t.Context(), stores.Hit{Key: "k", Limit: plans[0], Cost: 5}))
		require.True(t, r.hit(t, "k", plans[1]).Allowed, "what was remembered of the other plan is dropped too")
	})
}
