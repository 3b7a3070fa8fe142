package memory

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// patient is an attacker who uses that levels fall by themselves: he fills the table
// with keys, waits a little, brings them up again for a hit or two each, and so keeps
// them fresher than the key that he wants forgotten.
type patient struct {
	limit   stores.Limit
	each    int           // hits on each key that fills the table
	hits    int           // on the key that is to be forgotten, in each round
	pause   time.Duration // then
	refresh int           // hits on each key that fills the table, then
	fresh   int           // new keys with one hit, then
}

func (p patient) String() string {
	return fmt.Sprintf("%s: %d a key, then %d, a pause of %s, %d to refresh, %d new", p.limit, p.each, p.hits, p.pause, p.refresh, p.fresh)
}

// attack returns how many hits passed that a key that nobody forgets would have had
// refused, and how many requests on other keys that took.
func (p patient) attack(keys, rounds int) (forgotten, requests int) {
	k := newTables(keys).of(&p.limit)
	now := int64(1)
	send := func(key string, n int) {
		for range n {
			k.take(key, p.limit, 1, 0, 0, now)
		}
		requests += n
	}
	junk := make([]string, keys)
	for i := range junk {
		junk[i] = "junk" + strconv.Itoa(i)
		send(junk[i], p.each)
	}
	rule := meter.Of(p.limit)
	var twin meter.State
	for round := range rounds {
		for range p.hits {
			allowed := k.take("target", p.limit, 1, 0, 0, now).Allowed
			if expected := rule.Take(&twin, 1, now/1000).Allowed; allowed && !expected {
				forgotten++
			}
		}
		now += int64(p.pause)
		if p.refresh > 0 {
			for _, key := range junk {
				send(key, p.refresh)
			}
		}
		for i := range p.fresh {
			send("new"+strconv.Itoa(round)+"."+strconv.Itoa(i), 1)
		}
	}
	return forgotten, requests
}

// Waiting buys no forgetting: a hit that is forgotten costs as many requests under
// limits whose levels fall as under those whose levels stand.
func TestPatienceBuysNothing(t *testing.T) {
	const keys, rounds = 64, 60
	makers := []func(quota int, window time.Duration) stores.Limit{
		stores.TokenBucket, stores.LeakyBucket, stores.SlidingWindow,
		func(quota int, window time.Duration) stores.Limit {
			return stores.TokenBucket(quota, window).BlockFor(window / 2)
		},
		func(quota int, window time.Duration) stores.Limit {
			return stores.FixedWindow(quota, window).BlockFor(window)
		},
	}
	unit := 36 * time.Second // of a quota of 100 an hour
	attackers := []patient{
		// Down to 31 and up to 32 again, on the border of two classes.
		{limit: stores.TokenBucket(100, time.Hour), each: 32, hits: 60, pause: 2 * unit, refresh: 2, fresh: 8},
		{limit: stores.TokenBucket(100, time.Hour), each: 32, hits: 60, pause: 2 * unit, refresh: 2, fresh: 40},
		{limit: stores.TokenBucket(100, time.Hour), each: 32, hits: 60, pause: 2 * unit, refresh: 2, fresh: 60},
		{limit: stores.TokenBucket(100, time.Hour), each: 64, hits: 90, pause: 2 * unit, refresh: 2, fresh: 90},
		{limit: stores.TokenBucket(100, time.Hour), each: 64, hits: 90, pause: 2 * unit, refresh: 2, fresh: 130},
		{limit: stores.TokenBucket(100, time.Hour), each: 32, hits: 3, pause: 2 * unit, refresh: 2, fresh: 32},
		{limit: stores.LeakyBucket(100, time.Hour), each: 64, hits: 100, pause: 2 * unit, refresh: 2, fresh: 64},
		{limit: stores.TokenBucket(10, time.Hour), each: 4, hits: 7, pause: 12 * time.Minute, refresh: 2, fresh: 8},
		// From the quota down to one less, and up to it again.
		{limit: stores.TokenBucket(100, time.Hour), each: 100, hits: 100, pause: 2 * unit, refresh: 2, fresh: 8},
		{limit: stores.SlidingWindow(100, time.Hour), each: 64, hits: 63, pause: 31 * time.Minute, refresh: 1, fresh: 8},
		{limit: stores.SlidingWindow(100, time.Hour), each: 32, hits: 60, pause: time.Hour, refresh: 1, fresh: 32},
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		quota := 2 + rng.IntN(80)
		limit := makers[rng.IntN(len(makers))](quota, time.Hour)
		attackers = append(attackers, patient{
			limit: limit, each: 1 + rng.IntN(quota), hits: 1 + rng.IntN(quota),
			pause:   time.Hour / time.Duration(quota) * time.Duration(rng.IntN(4)) / time.Duration(1+rng.IntN(3)),
			refresh: rng.IntN(3), fresh: 1 + rng.IntN(keys)>>rng.IntN(6),
		})
	}
	worst := float64(keys)
	for _, p := range attackers {
		forgotten, requests := p.attack(keys, rounds)
		if forgotten > 0 {
			price := float64(requests) / float64(forgotten) / keys
			worst = min(worst, price)
			require.GreaterOrEqual(t, price, 1./8, "%s: %d hits forgotten for %d requests", p, forgotten, requests)
		}
	}
	require.Less(t, worst, float64(keys), "some of them had something forgotten, or the test shows nothing")
	t.Logf("the cheapest forgotten hit cost %.3f of the table in requests", worst)
}
