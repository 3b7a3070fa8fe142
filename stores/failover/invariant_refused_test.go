package failover_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
)

// refusalPlan are hits of all costs on a few keys, one after the other.
func refusalPlan(rng *rand.Rand, instances int) (plan []event) {
	for at := time.Duration(0); at < playTime; at += 20*time.Millisecond + time.Duration(rng.Int64N(int64(300*time.Millisecond))) {
		plan = append(plan, event{at: at, instance: rng.IntN(instances), hit: stores.Hit{
			Key: string(rune('a' + rng.IntN(3))), Limit: playLimit, Cost: 1 + rng.IntN(playQuota+1),
		}})
	}
	return plan
}

// Refused hits change nothing: without half of those that are refused, the others are
// decided as before, to the number; and so they are where one instance goes on without the store.
// (Of several each goes on from what it was told, refusals included.)
func TestRefusedHitsChangeNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, instances := range []int{1, 3} {
		for name, down := range map[string]bool{"healthy": false, "down": true} {
			if down && instances > 1 {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d instances", name, instances), func(t *testing.T) {
				for round := range uint64(20) {
					rng := rand.New(rand.NewPCG(seed, round))
					climate := climate{}
					if down {
						climate.turns, climate.kinds = []time.Duration{playTime / 3}, []weather{refused}
					}
					full := refusalPlan(rng, instances)
					var kept []event
					var want []outcome
					synctest.Test(t, func(t *testing.T) {
						f := newFleet(t, instances, climate, failover.Config{})
						for i, o := range f.play(full) {
							require.NoError(t, o.err)
							if o.Allowed || rng.IntN(2) == 0 {
								kept, want = append(kept, full[i]), append(want, o)
							}
						}
					})
					require.Less(t, len(kept), len(full)*4/5, "many were refused")
					synctest.Test(t, func(t *testing.T) {
						f := newFleet(t, instances, climate, failover.Config{})
						for i, o := range f.play(kept) {
							why := fmt.Sprintf("seed %d, round %d, hit %d at %s", seed, round, i, kept[i].at)
							require.NoError(t, o.err, why)
							require.Equal(t, want[i].Allowed, o.Allowed, why)
							if o.Allowed {
								require.Equal(t, want[i].Remaining, o.Remaining, why)
							}
						}
					})
				}
			})
		}
	}
}

// A client alone who waits as told, to the millisecond, is let in, whatever the weather and
// whichever of the instances he meets. Where nobody can know what became of a lost hit,
// he may be told once more, but he never waits for longer than a window after his last hit
// that was let in.
func TestWaitingAsToldWorks(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, kinds := range map[string][]weather{
		"fair": {fair}, "refused": {refused}, "lost before": {lostBefore}, "lost after": {lostAfter}, "silent": {silent},
		"all": {refused, lostBefore, lostAfter, silent},
	} {
		for _, instances := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d instances", name, instances), func(t *testing.T) {
				for round := range uint64(20) {
					rng := rand.New(rand.NewPCG(seed, round))
					climate := newClimate(rng, 10*playTime, kinds...)
					synctest.Test(t, func(t *testing.T) {
						f := newFleet(t, instances, climate, failover.Config{})
						told, exact := 0, name == "fair" || name == "refused" && instances == 1
						last := time.Now()
						hit := stores.Hit{Key: "k", Limit: playLimit}
						var trail []string
						for time.Since(f.start) < 10*playTime {
							if told == 0 {
								hit.Cost = 1 + rng.IntN(playQuota/instances)
							}
							d, err := f.instances[rng.IntN(instances)].Take(t.Context(), hit)
							require.NoError(t, err)
							trail = append(trail, fmt.Sprintf("%v %s %v wait %v", time.Since(f.start), d.Source, d.Allowed, d.RetryAfter))
							why := fmt.Sprintf("seed %d, round %d: %q", seed, round, trail[max(0, len(trail)-8):])
							if d.Allowed {
								told, last = 0, time.Now()
								continue
							}
							told++
							require.Positive(t, d.RetryAfter, why)
							require.LessOrEqual(t, d.RetryAfter, playLimit.Window, why)
							if exact {
								require.Equal(t, 1, told, why)
							}
							time.Sleep(d.RetryAfter)
							require.LessOrEqual(t, time.Since(last), 2*playLimit.Window+late, why)
						}
					})
				}
			})
		}
	}
}
