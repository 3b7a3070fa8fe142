package failover

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

var levels = []stores.Limit{
	stores.FixedWindow(5, 10*time.Second).BlockFor(30 * time.Second),
	stores.SlidingWindow(5, 10*time.Second),
	stores.SlidingLog(5, 10*time.Second),
	stores.TokenBucket(5, 10*time.Second),
	stores.LeakyBucket(5, 10*time.Second),
	stores.TokenBucket(5, 10*time.Second).BlockFor(30 * time.Second),
	stores.SlidingWindow(5, 10*time.Second).BlockFor(5 * time.Second),
}

func forLevels(t *testing.T, test func(t *testing.T, limit stores.Limit)) {
	for _, limit := range levels {
		t.Run(limit.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, limit) })
		})
	}
}

// Whoever had used four of five has one left when the store dies, whatever the limit.
func TestWarmLevels(t *testing.T) {
	forLevels(t, func(t *testing.T, limit stores.Limit) {
		r := newRig(t, Config{})
		for range 4 {
			require.Equal(t, stores.Shared, r.hit(t, "k", limit).Source)
		}
		r.trip(t, errDown)
		d := r.hit(t, "k", limit)
		require.Equal(t, stores.Local, d.Source)
		require.True(t, d.Allowed)
		require.Zero(t, d.Remaining)
		if limit.Algorithm == stores.Leaky {
			require.InDelta(t, 8*time.Second, d.Delay, float64(time.Millisecond))
		}
		d = r.hit(t, "k", limit)
		require.False(t, d.Allowed)
		require.GreaterOrEqual(t, d.ResetAfter, d.RetryAfter)
		wait := d.RetryAfter
		require.GreaterOrEqual(t, wait, limit.Block)
		require.LessOrEqual(t, wait, limit.Block+2*limit.Window)
		time.Sleep(wait)
		require.True(t, r.hit(t, "k", limit).Allowed, "waiting as told works")
	})
}

// A block that the store told of goes on without it, and one that began without it too.
func TestBlockInAnOutage(t *testing.T) {
	limit := stores.FixedWindow(2, time.Second).BlockFor(time.Hour)
	for _, begins := range []string{"before", "in it"} {
		t.Run(begins, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{})
				if begins == "in it" {
					r.trip(t, errDown)
				}
				for i := range 3 {
					require.Equal(t, i < 2, r.hit(t, "k", limit).Allowed)
				}
				r.trip2(t)
				start := time.Now()
				for time.Since(start) < time.Hour-time.Minute {
					d := r.hit(t, "k", limit)
					require.False(t, d.Allowed)
					require.Zero(t, d.Remaining)
					require.Positive(t, d.RetryAfter)
					require.LessOrEqual(t, d.RetryAfter, time.Hour-time.Since(start)+time.Second, "hits do not prolong it")
					time.Sleep(time.Minute)
				}
				time.Sleep(time.Minute + time.Second)
				require.True(t, r.hit(t, "k", limit).Allowed)
			})
		})
	}
}

// trip2 makes the store fail from now on.
func (r *rig) trip2(t testing.TB) {
	t.Helper()
	r.fake.failWith(errDown)
}

// bounded tells whether one instance kept a limit: every interval that ends with the
// last admission has no more than the limit promises for its length.
func bounded(limit stores.Limit, admitted []time.Time, unknown int) bool {
	last := admitted[len(admitted)-1]
	count := 0
	for i := len(admitted) - 1; i >= 0; i-- {
		count++
		length := last.Sub(admitted[i])
		most := limit.Quota
		switch limit.Algorithm {
		case stores.Token, stores.Leaky:
			each := limit.Window / time.Duration(limit.Quota)
			most += int((length + time.Millisecond) / each)
		case stores.Log:
			if length >= limit.Window {
				return true
			}
		default:
			if length >= limit.Window {
				return true
			}
			most *= 2
		}
		if count > most+unknown {
			return false
		}
	}
	return true
}

// Random schedules of outages: one instance keeps every limit, whatever is lost, and
// shuts nobody out for longer than the limit itself may.
func TestRandomSchedulesOfLevels(t *testing.T) {
	for _, limit := range levels {
		for seed := range uint64(12) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 7))
				mem, err := memory.New(memory.Config{})
				require.NoError(t, err)
				down := false
				w := &world{Store: mem, applied: rng.Float64(), cut: rng.Float64(), rng: rng, dropped: make(map[string][]time.Time), paid: make(map[string]int)}
				switch seed % 4 {
				case 0:
					w.cut = 0
				case 1:
					w.applied = 0
				}
				w.up = func(time.Time) bool { return !down }
				r := newRig(t, Config{})
				r.Store.shared, r.Store.take, r.Store.debtor = w, r.Store.takeShared, w
				admitted := make(map[string][]time.Time)
				last := make(map[string]time.Time)
				asked := make(map[string]time.Time)
				gaps := make(map[string]time.Duration)
				history := make(map[string][]string)
				start := time.Now()
				for range 3000 {
					if rng.IntN(60) == 0 {
						down = !down
					}
					key := "k" + string(rune('a'+rng.IntN(4)))
					now := time.Now()
					if at, ok := asked[key]; ok {
						gaps[key] = max(gaps[key], now.Sub(at))
					}
					asked[key] = now
					d := r.hit(t, key, limit)
					history[key] = append(history[key], fmt.Sprintf("%8.3f down=%-5v %-10s %-5v left=%d reset=%v paid=%d", now.Sub(start).Seconds(), down, d.Source, d.Allowed, d.Remaining, d.ResetAfter, w.paid[key]))
					if d.Allowed {
						admitted[key] = append(admitted[key], now)
						last[key], gaps[key] = now, 0
						require.True(t, bounded(limit, admitted[key], 0),
							"seed %d key %s limit %s cut %.2f applied %.2f: too many\n%s", seed, key, limit, w.cut, w.applied, strings.Join(history[key][max(0, len(history[key])-60):], "\n"))
					} else if at, ok := last[key]; ok {
						require.LessOrEqual(t, now.Sub(at), 2*limit.Window+2*limit.Block+gaps[key],
							"seed %d: %s is shut out\n%s", seed, limit, strings.Join(history[key][max(0, len(history[key])-60):], "\n"))
					}
					time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
				}
			})
		}
	}
}

// A debt is told once, and falls off by itself.
func TestDebtsOfLevels(t *testing.T) {
	forLevels(t, func(t *testing.T, limit stores.Limit) {
		r := newRig(t, Config{})
		r.trip(t, errDown)
		for range 3 {
			require.True(t, r.hit(t, "k", limit).Allowed)
		}
		require.Equal(t, 1+tripInARow, r.Stats().Debts)
		r.fake.failWith(nil)
		time.Sleep(openMost)
		owed := 3
		if limit.Algorithm == stores.Token || limit.Algorithm == stores.Leaky {
			owed = 1 // five seconds make two and a half
		}
		d := r.hit(t, "k", limit)
		require.Equal(t, stores.Shared, d.Source)
		require.Equal(t, 5-owed-1, d.Remaining)
		require.Equal(t, owed, r.fake.paid)
		r.hit(t, "k", limit)
		require.Equal(t, owed, r.fake.paid)
	})
}

// Departures from one instance keep their distance while the store flaps.
func TestDeparturesWhileFlapping(t *testing.T) {
	for _, cut := range []float64{0, 0.5, 1} {
		synctest.Test(t, func(t *testing.T) {
			mem, err := memory.New(memory.Config{})
			require.NoError(t, err)
			start := time.Now()
			w := &world{Store: mem, cut: cut, applied: 0.5, rng: rand.New(rand.NewPCG(3, 4))}
			w.up = func(now time.Time) bool { return int(now.Sub(start)/time.Second)%2 == 0 }
			r := newRig(t, Config{})
			r.Store.shared, r.Store.take, r.Store.debtor = w, r.Store.takeShared, w
			limit := stores.LeakyBucket(10, 5*time.Second)
			var departed time.Time
			n := 0
			for range 60 * 20 {
				if d := r.hit(t, "k", limit); d.Allowed {
					n++
					at := time.Now().Add(d.Delay)
					t.Logf("%v %v %v delay %v reset %v", cut, time.Since(start), d.Source, d.Delay, d.ResetAfter)
					require.GreaterOrEqual(t, at.Sub(departed), 500*time.Millisecond-2*time.Microsecond)
					departed = at
				}
				time.Sleep(50 * time.Millisecond)
			}
			require.Greater(t, n, 60)
		})
	}
}

// An instance that can't reach the store grants its share, and no more.
func TestShareOfLevels(t *testing.T) {
	forLevels(t, func(t *testing.T, limit stores.Limit) {
		r := newRig(t, Config{Instances: 2})
		r.trip(t, errDown)
		n := 0
		for range 10 {
			if r.hit(t, "k", limit).Allowed {
				n++
			}
		}
		require.Equal(t, 2, n)
		d, err := r.Take(t.Context(), stores.Hit{Key: "other", Limit: limit, Cost: 3})
		require.NoError(t, err)
		require.False(t, d.Allowed, "a cost above the share")
		require.Positive(t, d.RetryAfter)
	})
}

// A block that began without the store holds when it is back, and hits on it prolong
// nothing; a share that was used up begins none that outlives the outage.
func TestBlockOutlivesTheOutage(t *testing.T) {
	for instances, holds := range map[int]bool{1: true, 2: false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{Instances: instances})
			limit := stores.FixedWindow(4, time.Minute).BlockFor(time.Hour)
			r.trip(t, errDown)
			start := time.Now()
			for r.hit(t, "k", limit).Allowed {
			}
			time.Sleep(2 * limit.Window) // until nothing is owed any more
			r.fake.failWith(nil)
			r.hit(t, "other", five)
			require.Equal(t, Closed, r.Stats().State)
			if !holds {
				require.True(t, r.hit(t, "k", limit).Allowed)
				return
			}
			for time.Since(start) < time.Hour-time.Minute {
				require.False(t, r.hit(t, "k", limit).Allowed, "after %v", time.Since(start))
				time.Sleep(time.Minute)
			}
			time.Sleep(2 * time.Minute)
			require.True(t, r.hit(t, "k", limit).Allowed)
		})
	}
}

// What a large cost was told to wait is not repeated after a smaller hit was let
// through.
func TestRememberedCostIsOutdated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		limit := stores.TokenBucket(10, 10*time.Minute)
		take := func(cost int) stores.Decision {
			d, err := r.Take(t.Context(), stores.Hit{Key: "k", Limit: limit, Cost: cost})
			require.NoError(t, err)
			return d
		}
		require.True(t, take(8).Allowed)
		require.InDelta(t, 6*time.Minute, take(8).RetryAfter, float64(time.Second))
		require.True(t, take(2).Allowed)
		require.InDelta(t, 8*time.Minute, take(8).RetryAfter, float64(time.Second))
	})
}
