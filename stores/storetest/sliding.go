package storetest

import (
	"time"

	"github.com/sallyport/sallyport/stores"
)

var slidingClauses = []clause{
	{"a client that hammers gets the quota by the estimate, and no more", slidingHammered},
	{"RetryAfter is when the estimate has room, in this window or the next", slidingRoom},
	{"Refund takes from the newer window first, and from the older no more than the quota has", slidingRefund},
}

// slidingHammered adds up by itself what passed in each window, the first of which the
// first hit opens.
func slidingHammered(c *check) {
	c.patiently(instant*3/4, func(window time.Duration) bool {
		const quota = 8
		w := c.twin(stores.SlidingWindow(quota, window))
		all := c.hammer(w)
		if w.lost {
			return false
		}
		opened := all[0].from
		for i, p := range all {
			at := p.to - opened
			newer, older := 0, 0
			for _, q := range all[:i+1] {
				switch int(at/window) - int((q.from-opened)/window) {
				case 0:
					newer++
				case 1:
					older++
				}
			}
			left := window - at%window - 2*grain
			if estimate := float64(newer) + float64(older)*float64(left)/float64(window); estimate > quota+0.001 {
				c.Fatalf("%v: hit %d passed %v after the first, with %d in its window and %d in the one before: the estimate is %.2f", w.hit.Limit, i+1, at, newer, older, estimate)
			}
		}
		return true
	})
}

// slidingRoom fills one window at its start and looks five sixteenths into the next:
// eleven of them count still.
func slidingRoom(c *check) {
	s := c.open()
	c.patiently(instant, func(window time.Duration) bool {
		w := c.twin(stores.SlidingWindow(8, window))
		start := c.now()
		w.costing(8).take(s)
		// Nothing of it is gone before the next window, and an eighth of that has to go.
		full := w.told(s, 1, start)
		c.sleepUntil(start, window*21/16)
		two := w.costing(2).take(s) // 5.5 and 2
		one, six, eight := w.told(s, 1, start), w.told(s, 6, start), w.told(s, 8, start)
		if w.lost || eight.most > window*11/8-2*grain {
			return false
		}
		if !two.Allowed {
			c.Fatalf("Take %v: %s, five sixteenths into the window after a full one: want room for 2", w.hit.Limit, state(two))
		}
		full.passesAfter(w, window*9/8)
		one.passesAfter(w, window*11/8)
		six.passesAfter(w, window*2)
		eight.passesAfter(w, window*3)
		return true
	})
}

// slidingRefund has a full window before this one, and a plan that was lowered since.
func slidingRefund(c *check) {
	s, r := c.refunder()
	c.patiently(instant, func(window time.Duration) bool {
		w := c.twin(stores.SlidingWindow(16, window))
		start := c.now()
		w.costing(8).take(s)
		c.sleepUntil(start, window*17/16)
		w.costing(2).take(s)
		w.withQuota(4).costing(3).refund(r) // the 2, and 1 of the 4 that the 8 are now
		d := w.costing(1).take(s)
		if _, most := c.since(start); w.lost || most > window*5/4 {
			return false
		}
		c.want("Take", w.hit, d, true, 0) // more than two thirds of 3 are left, and this one
		return true
	})
}

// told is a decision between two moments.
type told struct {
	stores.Decision
	least, most time.Duration
}

func (w *twin) told(s stores.Store, cost int, start moment) (t told) {
	w.c.Helper()
	t.least, _ = w.c.since(start)
	t.Decision = w.costing(cost).take(s)
	_, t.most = w.c.since(start)
	return t
}

func (t told) passesAfter(w *twin, d time.Duration) {
	w.c.Helper()
	if t.Allowed || t.RetryAfter < d-t.most-grain || t.RetryAfter > d-t.least+grain {
		w.c.Fatalf("Take %v: %s, %v to %v after the first hit: want it refused until %v after that", w.hit.Limit, state(t.Decision), t.least, t.most, d)
	}
}
