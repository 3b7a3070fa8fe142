package storetest

import (
	"math"
	"time"

	"github.com/sallyport/sallyport/stores"
)

var formDebtClauses = []formClause{
	{"TakeOwing takes what is owed, up to the quota, and then the hit", formDebt},
	{"a payment ends after until, and moves nothing", formDebtEnds},
	{"what is owed for no time is not taken", formDebtNone},
	{"parallel payments are all taken", formDebtParallel},
}

func formDebt(c *check, f form) {
	s, to := c.debtor()
	other := c.open()
	h := c.hit(f, 10, long)
	c.want("TakeOwing", h, c.takeOwing(to, h, 3, long), true, 6)
	c.allow(other, costing(h, 2), 4)
	c.want("TakeOwing", costing(h, 4), c.takeOwing(to, costing(h, 4), 1, long), false, 3) // the payment stands
	c.fill(s, h, 3)

	for _, owed := range []int{4, 5, 1000, math.MaxInt} {
		w := c.twin(f.limit(5, long))
		w.take(s)
		c.want("TakeOwing", w.hit, w.takeOwing(to, owed, long), false, 0)
		// The level shows under a raised quota: 5 of 5 were paid, and no more.
		w.withQuota(10).costing(5).take(other)
		w.costing(1).take(other)
	}
}

func formDebtEnds(c *check, f form) {
	s, to := c.debtor()
	c.patiently(instant*3/4, func(window time.Duration) bool {
		fresh, open := c.twin(f.limit(4, window)), c.twin(f.limit(4, window))
		for range 2 {
			fresh.takeOwing(to, 4, window/3)
			open.take(s)
			c.sleep(window / 8)
			open.takeOwing(to, 1, window/16)
			fresh.takeOwing(to, 1, window)
			c.sleep(window / 8)
			fresh.take(s)
			open.takeOwing(to, 2, window)
			c.sleep(window / 8) // what fresh paid first is over
			fresh.costing(2).take(s)
			d := fresh.costing(1).take(s)
			d.ResetAfter = max(d.ResetAfter, open.take(s).ResetAfter)
			if fresh.lost || open.lost {
				return false
			}
			c.sleep(d.ResetAfter + window/8)
		}
		return true
	})
}

func formDebtNone(c *check, f form) {
	s, to := c.debtor()
	h := c.hit(f, 5, long)
	c.want("TakeOwing", h, c.takeOwing(to, h, 3, 0), true, 4)
	c.want("TakeOwing", h, c.takeOwing(to, h, 0, long), true, 3)
	for _, bad := range []struct {
		owed  int
		until time.Duration
	}{{-1, long}, {math.MinInt, long}, {1, -1}, {1, long + time.Millisecond}} {
		_, err := to.TakeOwing(c.Context(), h, bad.owed, bad.until)
		c.wantInvalid("TakeOwing", h, err)
	}
	c.fill(s, h, 3)
}

// formDebtParallel is gentler than its like for fixed windows, as formRefundParallel.
func formDebtParallel(c *check, f form) {
	c.debtor()
	by := c.openMany(instances)
	h := c.hit(f, 2*instances, long)
	decisions, errs := make([]stores.Decision, instances), make([]error, instances)
	parallel(instances, func(i int) {
		decisions[i], errs[i] = by[i].(stores.Debtor).TakeOwing(c.Context(), h, 1, long)
	})
	for i, d := range decisions {
		c.must("TakeOwing", h, errs[i])
		c.judge("TakeOwing", h, d)
		if !d.Allowed {
			c.Fatalf("TakeOwing %v: %s: want each of %d hits that owe 1 allowed", h.Limit, state(d), instances)
		}
	}
	c.refuse(by[0], h, 0)
}
