package failover_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/internal/sim"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
)

const (
	playTime  = 40 * time.Second
	playKeys  = 256 // of each instance's memory
	playQuota = 6
	late      = 2 * time.Second // the longest that a call may take
)

var playLimit = stores.FixedWindow(playQuota, 10*time.Second)

// honestPlan are visitors with a key each, who send as many hits as every instance grants
// by itself, and one key that somebody hammers.
func honestPlan(rng *rand.Rand, instances int) (plan []event) {
	share := max(1, playQuota/instances)
	for n := range 60 {
		begin := time.Duration(rng.Int64N(int64(playTime)))
		for k := range share {
			plan = append(plan, event{
				at: begin + time.Duration(k)*time.Duration(rng.Int64N(int64(2*time.Second))), instance: rng.IntN(instances),
				hit: stores.Hit{Key: "honest" + strconv.Itoa(n), Limit: playLimit},
			})
		}
	}
	for at := time.Duration(0); at < playTime; at += time.Duration(rng.Int64N(int64(100 * time.Millisecond))) {
		plan = append(plan, event{at: at, instance: rng.IntN(instances), hit: stores.Hit{Key: "attacked", Limit: playLimit}})
	}
	return plan
}

// hostilePlan is what an attacker adds: a flood of keys that overflows the memory, of all
// costs, many of whom hang up; hits on the attacked key that are too dear, or that nobody waits for;
// and hits that are none. It stays below what it costs to have an exhausted key
// forgotten.
func hostilePlan(rng *rand.Rand, instances int) (plan []event) {
	for at := time.Duration(0); at < playTime; at += time.Duration(rng.Int64N(int64(30 * time.Millisecond))) {
		e := event{at: at, instance: rng.IntN(instances), hit: stores.Hit{Key: "x" + strconv.Itoa(len(plan)), Limit: playLimit}}
		switch rng.IntN(8) {
		case 0:
			e.hit.Cost = 1 + rng.IntN(playQuota)
		case 1:
			e.hit.Key = "x-hammered"
		case 2:
			e.hit.Key, e.hangUp = "attacked", time.Duration(1+rng.IntN(5))*time.Millisecond
		case 3:
			e.hit.Key, e.hit.Cost = "attacked", playQuota+1
		case 4:
			e.hit.Key, e.hit.Cost = "attacked", playQuota
		case 5:
			e.hit.Key = "\x00"
		case 6:
			e.hit.Outage = stores.Outage(rng.IntN(3))
		case 7:
			for range rng.IntN(20) { // all at once
				plan = append(plan, event{at: at, instance: e.instance, hit: stores.Hit{Key: "attacked", Limit: playLimit}})
			}
		}
		if rng.IntN(2) == 0 {
			e.hangUp = time.Duration(1+rng.IntN(5)) * time.Millisecond
		}
		plan = append(plan, e)
	}
	return plan
}

// Adding hostile requests never lets an attacked key have more than its bound, and never
// turns the allow of a visitor who keeps to the limit into a refusal, or lets
// him wait longer than a call, whatever the weather.
func TestHostileRequestsAddNothing(t *testing.T) {
	climates := map[string][]weather{
		"fair": {fair}, "refused": {refused}, "throttled": {throttled}, "lost before": {lostBefore}, "lost after": {lostAfter},
		"silent": {silent}, "all": {refused, lostBefore, lostAfter, silent, throttled},
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for name, kinds := range climates {
		for _, instances := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d instances", name, instances), func(t *testing.T) {
				for round := range uint64(3) {
					rng := rand.New(rand.NewPCG(seed, round))
					climate := newClimate(rng, playTime, kinds...)
					honest := honestPlan(rng, instances)
					hostile := hostilePlan(rng, instances)
					for _, plan := range [][]event{honest, append(honest[:len(honest):len(honest)], hostile...)} {
						synctest.Test(t, func(t *testing.T) {
							f := newFleet(t, instances, climate, failover.Config{MaxKeys: playKeys, MaxInFlight: 16})
							requireHonest(t, f, plan, f.play(plan), kinds, fmt.Sprintf("seed %d, round %d, %d of %d events hostile", seed, round, len(plan)-len(honest), len(plan)))
						})
					}
				}
			})
		}
	}
}

func requireHonest(t *testing.T, f *fleet, plan []event, outcomes []outcome, kinds []weather, what string) {
	var admitted []time.Time
	unknown := 0 // hits that were let through, and of which the store did not know, nor this instance that it did not
	for i, o := range outcomes {
		key := plan[i].hit.Key
		require.LessOrEqual(t, o.took, late+away, what)
		requireOnePath(t, f, i, o, what)
		switch {
		case key == "\x00":
			require.ErrorIs(t, o.err, stores.ErrInvalid)
		case key[0] == 'h':
			require.NoError(t, o.err)
			require.True(t, o.Allowed, "%s: %+v", what, o)
			if kinds[0] == fair {
				require.Equal(t, stores.Shared, o.Source, "%s: no abuse makes an outage", what)
			}
		case key == "attacked" && o.Allowed:
			if o.Source == stores.Local && f.asked[i] > 0 && !fault.Definite(o.Fault) {
				unknown++
			}
			for range max(1, plan[i].hit.Cost) {
				admitted = append(admitted, o.when)
			}
		}
	}
	most := playQuota
	if n := len(f.instances); n > 1 {
		most += n * max(1, playQuota/n)
	} else if unknown > 0 {
		// A lost hit may open a window of the store while another is under way here.
		most += playQuota
	}
	require.LessOrEqual(t, sim.Least(admitted, playLimit.Window-late), most, what)
	require.NotEmpty(t, admitted)
}

// requireOnePath checks that one decided, and that nobody was asked twice.
func requireOnePath(t *testing.T, f *fleet, i int, o outcome, what string) {
	f.mu.Lock()
	asked, counted := f.asked[i], f.counted[i]
	f.mu.Unlock()
	why := fmt.Sprintf("%s: asked %d, counted %d, %+v", what, asked, counted, o)
	require.LessOrEqual(t, asked, 1, why)
	require.LessOrEqual(t, counted, asked, why)
	switch {
	case o.err != nil:
		require.Zero(t, asked, why)
	case o.Source == stores.Shared:
		require.Equal(t, o.Allowed, counted == 1, why)
		require.NoError(t, o.Fault, why)
	case o.Source == stores.Remembered:
		require.Zero(t, asked, why)
		require.False(t, o.Allowed, why)
	default:
		require.Error(t, o.Fault, why)
		require.True(t, counted == 0 || !fault.Definite(o.Fault), why)
	}
}
