package storetest

import (
	"math"
	"time"

	"github.com/sallyport/sallyport/stores"
)

var formRefundClauses = []formClause{
	{"Refund gives the cost back, and no more than was used", formRefund},
	{"Refund of a level above a lowered quota starts at the quota", formRefundLowered},
	{"Refund opens, moves and prolongs nothing", formRefundMoves},
	{"Refund of what time has forgotten gives nothing", formRefundLate},
	{"parallel refunds all count", formRefundParallel},
}

func formRefund(c *check, f form) {
	s, r := c.refunder()
	h := c.hit(f, 5, long)
	c.fill(s, h, 5)
	for range 20 {
		c.refuse(s, h, 0)
	}
	c.refund(r, h)
	c.fill(s, h, 1)
	c.refund(r, costing(h, 3))
	c.refund(r, costing(h, 0))
	c.fill(s, h, 4)
	for _, cost := range []int{4, 2, 5, 6, math.MaxInt} {
		c.refund(r, costing(h, cost))
	}
	c.fill(s, h, 5)
}

// formRefundLowered: the refund counts from the quota that is in force, so what a
// plan's lowering left above it has not to be given back first.
func formRefundLowered(c *check, f form) {
	s, r := c.refunder()
	h := c.hit(f, 10, long)
	c.allow(s, costing(h, 9), 1)
	h = withQuota(h, 4)
	if f.bucket() {
		c.refuse(s, h, 0) // 3.6 of 4 are used
		c.refund(r, costing(h, 2))
		c.fill(s, h, 2)
		return
	}
	c.refuse(s, h, 0)
	c.refund(r, costing(h, 3))
	c.fill(s, h, 3)
	c.refund(r, costing(h, 4))
	c.fill(s, h, 4)
}

func formRefundMoves(c *check, f form) {
	s, r := c.refunder()
	w := c.twin(f.limit(3, long))
	w.costing(2).refund(r)
	c.sleep(50 * grain)
	w.take(s)
	c.sleep(50 * grain)
	for range 3 {
		w.costing(1).refund(r)
		c.sleep(50 * grain)
		w.costing(3).take(s)
		w.costing(1).take(s)
	}
	w.costing(3).refund(r)
	c.sleep(50 * grain)
	w.take(s)
	w.costing(1).take(s)
}

// formRefundLate waits until the whole quota is back, and refunds then: it must be no
// credit, and open nothing that ends early.
func formRefundLate(c *check, f form) {
	s, r := c.refunder()
	c.patiently(instant/2, func(window time.Duration) bool {
		w := c.twin(f.limit(3, window))
		d := w.costing(3).take(s)
		c.sleep(d.ResetAfter + window/8)
		w.refund(r)
		w.refund(r)
		c.sleep(window / 2)
		w.take(s)
		w.costing(1).take(s)
		c.sleep(window / 4)
		w.costing(3).take(s)
		return !w.lost
	})
}

// formRefundParallel is gentler than its like for fixed windows: here a store may have
// to read before it writes, and to start anew when another was faster.
func formRefundParallel(c *check, f form) {
	s, _ := c.refunder()
	by := c.openMany(instances)
	h := c.hit(f, 20, long)
	c.allow(s, costing(h, 10), 10)
	c.allow(s, costing(h, 10), 0)
	errs := make([]error, instances)
	parallel(instances, func(i int) { errs[i] = by[i].(stores.Refunder).Refund(c.Context(), h) })
	for _, err := range errs {
		c.must("Refund", h, err)
	}
	c.fill(s, h, instances)
}
