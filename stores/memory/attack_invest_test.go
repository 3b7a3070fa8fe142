package memory

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// investor is an attacker who spends once on filling the table, to have his own key
// forgotten again and again afterwards.
type investor struct {
	quota, each int // of the keys that fill the table: their quota, and how much each uses
	target      int // the quota of the key that is to be forgotten
	hits        int // on that key before it is to be forgotten
	fresh       int // new keys then, with one hit each
	refresh     bool
	prepared    int // if not 0: new keys get so many hits at first, and the rest of each in the next round
}

func (v investor) String() string {
	return fmt.Sprintf("%d of %d a key, then %d of %d and %d new, refresh %v, prepared %d", v.each, v.quota, v.hits, v.target, v.fresh, v.refresh, v.prepared)
}

// attack returns how many hits were forgotten for how many requests.
func (v investor) attack(t *testing.T, keys, rounds int) (forgotten, requests int) {
	s := open(t, keys)
	junk, his := stores.FixedWindow(v.quota, time.Hour), stores.FixedWindow(v.target, time.Hour)
	send := func(key string, limit stores.Limit, n int) (allowed int) {
		for range n {
			if take(t, s, key, limit).Allowed {
				allowed++
			}
		}
		return allowed
	}
	for i := range keys {
		requests += v.each
		send("invested"+strconv.Itoa(i), junk, v.each)
	}
	allowed := 0
	for round := range rounds {
		allowed += send("target", his, v.hits)
		if v.refresh {
			for i := range keys {
				send("invested"+strconv.Itoa(i), junk, 1)
			}
			requests += keys
		}
		for i := range v.fresh {
			name := func(round int) string { return "new" + strconv.Itoa(round) + "." + strconv.Itoa(i) }
			send(name(round), junk, max(1, v.prepared))
			requests += max(1, v.prepared)
			if v.prepared > 0 && round > 0 {
				send(name(round-1), junk, 1)
				requests++
			}
		}
	}
	return max(0, allowed-v.target), requests
}

// To have used hits forgotten costs what the documentation of the table says also in
// the long run: what was spent on filling it is used up by what it made the table forget.
func TestForgettingCostsEachTime(t *testing.T) {
	const keys = 64
	attackers := []investor{
		{quota: 5, each: 4, target: 5, hits: 3, fresh: 1},
		{quota: 5, each: 2, target: 5, hits: 1, fresh: keys / 16},
		{quota: 10, each: 8, target: 10, hits: 7, fresh: 1},
		{quota: 100, each: 64, target: 100, hits: 63, fresh: 1},
		{quota: 20, each: 20, target: 5, hits: 5, fresh: 1},                    // held keys of a larger quota beside one of a smaller
		{quota: 5, each: 5, target: 5, hits: 5, fresh: 1, refresh: true},       // refused hits keep the held ones fresh
		{quota: 100, each: 70, target: 100, hits: 33, fresh: 1, refresh: true}, // one hit more keeps them fresh
		{quota: 100, each: 4, target: 100, hits: 4, fresh: keys / 2, prepared: 3},
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 80 {
		quota := 2 + rng.IntN(60)
		v := investor{quota: quota, each: 1 + rng.IntN(quota-1), target: quota, hits: 1 + rng.IntN(quota), fresh: 1 + rng.IntN(keys)>>rng.IntN(8)}
		if rng.IntN(4) == 0 {
			v.prepared = 1 + rng.IntN(4)
		}
		attackers = append(attackers, v)
	}
	for _, v := range attackers {
		forgotten, requests := v.attack(t, keys, 200)
		require.GreaterOrEqual(t, requests, keys/8*forgotten, "%s: %d hits forgotten for %d requests, which is %.3f of the table a hit",
			v, forgotten, requests, float64(requests)/float64(forgotten)/keys)
	}
}
