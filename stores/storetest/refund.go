package storetest

import (
	"time"

	"github.com/sallyport/sallyport/stores"
)

var refundClauses = []clause{
	{"Refund gives the cost back", refundGivesBack},
	{"Refund never goes below zero used", refundNotBelowZero},
	{"Refund of a key that is not there opens no window", refundMissing},
	{"Refund moves no window's end", refundMovesNothing},
	{"after the window's end Refund gives nothing", refundTooLate},
	{"parallel refunds all count, and never go below zero", refundParallel},
	{"Refund of a level above a lowered quota starts at the quota", func(c *check) { formRefundLowered(c, fixedForm) }},
}

func (c *check) refunder() (stores.Store, stores.Refunder) {
	c.Helper()
	s := c.open()
	r, ok := s.(stores.Refunder)
	if !ok {
		c.Skipf("the store has no Refund")
	}
	return s, r
}

func (c *check) refund(r stores.Refunder, h stores.Hit) {
	c.Helper()
	c.must("Refund", h, r.Refund(c.Context(), h))
}

func refundGivesBack(c *check) {
	s, r := c.refunder()
	h := c.fixed(5, long)
	c.fill(s, h, 5)
	for range 20 {
		c.refuse(s, h, 0)
	}
	// Refused hits took nothing, so nothing of them stands in the way now.
	c.refund(r, h)
	c.fill(s, h, 1)
	c.refund(r, costing(h, 3))
	c.refund(r, costing(h, 0))
	c.fill(s, h, 4)
}

func refundNotBelowZero(c *check) {
	s, r := c.refunder()
	h := c.fixed(5, long)
	c.allow(s, h, 4)
	c.allow(s, h, 3)
	c.refund(r, costing(h, 5))
	c.refund(r, h)
	c.fill(s, h, 5)
}

func refundMissing(c *check) {
	s, r := c.refunder()
	h := c.fixed(2, long)
	c.refund(r, costing(h, 2))
	c.sleep(50 * grain)
	w := c.opening(h)
	w.ends(c.allow(s, h, 1))
	w.ends(c.allow(s, h, 0))
	c.sleep(50 * grain)
	w.ends(c.refuse(s, h, 0))
}

func refundMovesNothing(c *check) {
	s, r := c.refunder()
	h := c.fixed(3, long)
	w := c.opening(h)
	c.fill(s, h, 3)
	for range 3 {
		c.sleep(50 * grain)
		c.refund(r, h)
		w.ends(c.allow(s, h, 0))
		c.sleep(50 * grain)
		w.ends(c.refuse(s, h, 0))
	}

	c.patiently(instant, func(window time.Duration) bool {
		h := c.fixed(3, window)
		w := c.opening(h)
		if !w.fill(s, 3) {
			return false
		}
		c.sleep(window / 2)
		c.refund(r, h)
		w.over()
		w = c.opening(h)
		return w.fill(s, 3)
	})
}

func refundTooLate(c *check) {
	s, r := c.refunder()
	c.patiently(instant, func(window time.Duration) bool {
		h := c.fixed(3, window)
		w := c.opening(h)
		if !w.fill(s, 3) {
			return false
		}
		w.over()
		c.refund(r, costing(h, 3))
		c.sleep(window / 2)
		w = c.opening(h)
		if !w.fill(s, 3) {
			return false
		}
		c.sleepUntil(w.opened, window*3/4)
		d := c.take(s, h)
		if w.ended() {
			return false
		}
		c.want("Take", h, d, false, 0)
		return true
	})
}

func refundParallel(c *check) {
	s, _ := c.refunder()
	by := c.openMany(instances)
	refundAll := func(h stores.Hit, n int) {
		c.Helper()
		errs := make([]error, n)
		parallel(n, func(i int) { errs[i] = by[i%len(by)].(stores.Refunder).Refund(c.Context(), h) })
		for _, err := range errs {
			c.must("Refund", h, err)
		}
	}

	h := c.fixed(flood, long)
	c.allow(s, costing(h, flood), 0)
	refundAll(h, 40)
	c.fill(s, h, 40)

	h = c.fixed(5, long)
	c.allow(s, costing(h, 3), 2)
	refundAll(h, flood)
	c.fill(s, h, 5)
}
