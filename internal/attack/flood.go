package main

import (
	"context"
	"math/bits"
	"strconv"
	"time"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// window is long enough for nothing to expire during an attack.
const window = 12 * time.Hour

// kind is a way of counting.
type kind struct {
	name string
	of   func(quota int) stores.Limit
	// scenes are those that make a difference to it; its keys lie in the same sort of
	// table as those of the others.
	scenes []scene
	large  bool // measured with large stores too
}

var kinds = []kind{
	{"fixed", func(quota int) stores.Limit { return stores.FixedWindow(quota, window) }, scenes, true},
	{"sliding", func(quota int) stores.Limit { return stores.SlidingWindow(quota, window) }, scenes[:2], false},
	{"token", func(quota int) stores.Limit { return stores.TokenBucket(quota, window) }, scenes[:2], false},
	{"leaky", func(quota int) stores.Limit { return stores.LeakyBucket(quota, window) }, scenes[:2], false},
	{"fixed, block", func(quota int) stores.Limit { return stores.FixedWindow(quota, window).BlockFor(window) }, scenes[:2], false},
	{"token, block", func(quota int) stores.Limit { return stores.TokenBucket(quota, window).BlockFor(window) }, scenes[:2], false},
}

// offender is who wants to be forgotten.
type offender struct {
	name string
	hits func(quota int) int
}

var offenders = []offender{
	{"refused", func(quota int) int { return quota + 1 }},
	{"at quota", func(quota int) int { return quota }},
	{"at quota-1", func(quota int) int { return quota - 1 }},
}

// used is how much of the quota his hits took.
func (o offender) used(quota int) int { return min(o.hits(quota), quota) }

// bar is the least that it has to cost to have him forgotten.
func (o offender) bar(maxKeys, quota int) int {
	if used := o.used(quota); used < quota {
		return maxKeys / 2 * used
	}
	return maxKeys * 7 / 8 * quota
}

// scene is what the store has to do beside.
type scene struct {
	name string
	// prepare returns the requests that the attacker had to send for it.
	prepare func(s *memory.Store, maxKeys int, limit stores.Limit) int
	// flood is the limit under which the flood comes; nil: the offender's own.
	flood func() stores.Limit
}

var scenes = []scene{
	{"alone", nil, nil},
	{"held full of junk", fillHeld, nil},
	{"flood of cooldowns of the same window", nil, func() stores.Limit { return stores.Cooldown(window) }},
	{"flood of cooldowns of another window", nil, func() stores.Limit { return stores.Cooldown(window / 2) }},
}

// limit is the flood's, if the offender's is his.
func (sc scene) limit(his stores.Limit) stores.Limit {
	if sc.flood == nil {
		return his
	}
	return sc.flood()
}

// fillHeld uses up the quotas of as many keys as the store holds. Of that the
// attacker is charged with the part only that has a use for him: 7/8 of the table.
func fillHeld(s *memory.Store, maxKeys int, limit stores.Limit) int {
	for i := range maxKeys {
		hit := stores.Hit{Key: "junk" + strconv.Itoa(i), Limit: limit, Cost: limit.Quota}
		mustTake(s, hit)
	}
	return maxKeys * 7 / 8 * limit.Quota
}

func mustTake(s *memory.Store, hit stores.Hit) {
	if _, err := s.Take(context.Background(), hit); err != nil {
		panic(err)
	}
}

// cost returns how many requests it took, with so many hits on each key of the
// flood, until the offender was forgotten. It gives up after most.
func cost(sc scene, o offender, limit stores.Limit, maxKeys, perKey, most int) (requests int, forgotten bool) {
	s, err := memory.New(memory.Config{MaxKeys: maxKeys})
	if err != nil {
		panic(err)
	}
	sent := 0
	if sc.prepare != nil {
		sent = sc.prepare(s, maxKeys, limit)
		most += sent
	}
	his := stores.Hit{Key: "offender", Limit: limit}
	for range o.hits(limit.Quota) {
		mustTake(s, his)
	}
	flood := stores.Hit{Limit: sc.limit(limit)}
	for sent < most {
		flood.Key = "flood" + strconv.Itoa(sent)
		for range perKey {
			mustTake(s, flood)
			sent++
		}
		d, err := s.Peek(context.Background(), his)
		if err != nil {
			panic(err)
		}
		if d.Allowed && d.Remaining > limit.Quota-o.used(limit.Quota) {
			return sent, true
		}
	}
	return sent, false
}

// cheapest tries floods of 1, 2, 4 ... hits a key, of exactly what uses up a quota,
// and of what the offender used himself. perKey is 0 if none had him forgotten.
func cheapest(sc scene, o offender, limit stores.Limit, maxKeys, most int) (requests, perKey int) {
	quota := sc.limit(limit).Quota
	tries := []int{quota}
	for k := range bits.Len(uint(quota)) {
		tries = append(tries, 1<<k)
	}
	if used := o.used(limit.Quota); used > 0 && used < quota {
		tries = append(tries, used)
	}
	for _, n := range tries {
		c, forgotten := cost(sc, o, limit, maxKeys, n, most)
		if forgotten && (perKey == 0 || c < requests) {
			requests, perKey = c, n
		}
	}
	return requests, perKey
}
