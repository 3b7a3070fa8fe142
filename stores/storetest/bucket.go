package storetest

import (
	"time"

	"github.com/sallyport/sallyport/stores"
)

var tokenClauses = []clause{
	{"the capacity passes at once, and then the refill", tokenHammered},
	{"the bucket refills evenly", tokenEvenly},
}

var leakyClauses = []clause{
	{"departures keep an even distance", leakyHammered},
	{"a burst departs one by one, and what overflows is refused", leakyBurst},
}

// refill wants so many passed as the bucket held and as came in since.
func refill(c *check, w *twin, all []passed) {
	c.Helper()
	emission := w.hit.Limit.Window / time.Duration(w.hit.Limit.Quota)
	for i, p := range all {
		room := w.hit.Limit.Quota + int((p.to-all[0].from+grain)/emission)
		if i+1 > room {
			c.Fatalf("%v: %d hits passed in %v: want at most %d", w.hit.Limit, i+1, p.to-all[0].from, room)
		}
	}
}

func tokenHammered(c *check) {
	c.patiently(instant*3/4, func(window time.Duration) bool {
		w := c.twin(stores.TokenBucket(8, window))
		s, start := c.open(), w.now()
		for range 8 {
			if d := w.take(s); !d.Allowed {
				c.Fatalf("Take %v: %s: want the whole capacity at once", w.hit.Limit, state(d))
			}
		}
		// The bucket is empty: each hit from here on had to be refilled.
		for i, p := range c.hammer(w) {
			if due := time.Duration(i+1) * window / 8; p.to-start < due-grain {
				c.Fatalf("%v: %d hits passed beyond the capacity in %v: want one in %v", w.hit.Limit, i+1, p.to-start, window/8)
			}
		}
		return true
	})
}

// tokenEvenly waits for each unit. In four emptyings' time four units come, no sooner
// and no later than evenly.
func tokenEvenly(c *check) {
	s := c.open()
	c.patiently(instant/2, func(window time.Duration) bool {
		w := c.twin(stores.TokenBucket(5, window))
		start := c.now()
		w.costing(5).take(s)
		emptied := c.now()
		for i := 1; i <= 8; i++ {
			d := w.costing(1).take(s)
			if !d.Allowed {
				c.sleep(d.RetryAfter)
				d = w.take(s)
			}
			due := time.Duration(i) * window / 5
			if _, most := c.since(start); !d.Allowed || most < due-grain {
				c.Fatalf("Take %v: %s, %v after the bucket was emptied: want unit %d after %v", w.hit.Limit, state(d), most, i, due)
			}
			if _, most := c.since(emptied); most > due+window/10 {
				return false // slower than the refill
			}
		}
		return true
	})
}

// leakyHammered waits as told in thought: a departure is the time of the hit and its
// Delay.
func leakyHammered(c *check) {
	c.patiently(instant*3/4, func(window time.Duration) bool {
		w := c.twin(stores.LeakyBucket(8, window))
		all := c.hammer(w)
		refill(c, w, all)
		for i := 1; i < len(all); i++ {
			early := all[i-1].from + all[i-1].delay
			late := all[i].to + all[i].delay
			if late-early < window/8-grain {
				c.Fatalf("%v: hit %d departs %v after the one before: want %v between them", w.hit.Limit, i+1, late-early, window/8)
			}
		}
		return true
	})
}

func leakyBurst(c *check) {
	one, other := c.open(), c.open()
	w := c.twin(stores.LeakyBucket(6, long))
	for i := range 4 {
		one, other = other, one
		cost := 1 + i%2
		d := w.costing(cost).take(one)
		due := long / 6 * time.Duration(i+i/2)
		if !d.Allowed || d.Delay > due || d.Delay < due-time.Minute {
			c.Fatalf("Take %s: %s, Delay %v: want it allowed with a Delay of %v", describe(w.hit), state(d), d.Delay, due)
		}
	}
	for range 10 {
		w.costing(1).take(one)
		w.costing(2).take(other)
	}
}
