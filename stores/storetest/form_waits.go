package storetest

import (
	"time"

	"github.com/sallyport/sallyport/stores"
)

var formWaitClauses = []formClause{
	{"a hit waits as long as it is told, and no longer", formWaits},
	{"a client slower than the limit is never refused", formSlow},
}

// formWaits waits for hits of several costs, to just before the moment told and then
// to it. There a window may end, and then another key goes on.
func formWaits(c *check, f form) {
	s := c.open()
	c.patiently(instant/2, func(window time.Duration) bool {
		var w *twin
		for i := range 6 {
			if w == nil || w.lost {
				w = c.twin(f.limit(4, window))
				w.take(s)
				c.sleep(window/9 + 333_333)
				w.costing(3).take(s)
			}
			d := w.costing(1 + i%3).take(s)
			if d.Allowed {
				continue
			}
			if soon := d.RetryAfter - 3*fineness(w.hit.Limit.Algorithm); soon > 0 {
				c.sleep(soon)
				if d = w.take(s); d.Allowed {
					continue // the machine was late; else the twin had complained
				}
			}
			c.sleep(d.RetryAfter)
			if next := w.take(s); !next.Allowed {
				c.Fatalf("Take %s: %s, after a wait of %v as the refusal before had said: want it allowed", describe(w.hit), state(next), d.RetryAfter)
			}
			if w.slack > window/10 {
				return false
			}
			c.sleep(333_333)
		}
		return true
	})
}

// formSlow hits a little slower than the limit allows on end. Two sliding windows only
// estimate: there half the pace is sure.
func formSlow(c *check, f form) {
	s := c.open()
	h := c.hit(f, 5, instant/2)
	pace := h.Limit.Window * 10 / 49
	if f.algorithm() == stores.Sliding {
		pace *= 2
	}
	for i := range 12 {
		if d := c.take(s, h); !d.Allowed {
			c.Fatalf("Take %v: %s, but hit %d came %v after the one before", h.Limit, state(d), i+1, pace)
		}
		c.sleep(pace)
	}
}

// passed is a hit that was allowed, somewhere between two moments.
type passed struct {
	from, to time.Duration
	delay    time.Duration
}

// hammer hits forty times in the time of a window, refused or not, by two instances in
// turn, for three windows. Each answer is held against the model.
func (c *check) hammer(w *twin) (all []passed) {
	c.Helper()
	one, other := c.open(), c.open()
	end := w.now() + 3*w.hit.Limit.Window
	for w.now() < end {
		w.clear(true)
		from := w.now()
		if d := w.take(one); d.Allowed {
			_, to := w.call(func() {})
			all = append(all, passed{from, to, d.Delay})
		}
		one, other = other, one
		c.sleep(w.hit.Limit.Window/40 + 123_456)
	}
	return all
}
