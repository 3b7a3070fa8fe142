package storetest

import (
	"math"
	"slices"
	"time"

	"github.com/sallyport/sallyport/stores"
)

var debtClauses = []clause{
	{"TakeOwing takes what is owed, then the hit", debtIsTaken},
	{"a payment never lifts a level above the quota", debtSaturates},
	{"a payment stands although the hit is refused", debtOfARefusedHit},
	{"a window that a payment opens ends after until", debtOpensShort},
	{"no payment moves the end of a window", debtMovesNothing},
	{"parallel payments are all taken", debtParallel},
}

func (c *check) debtor() (stores.Store, stores.Debtor) {
	c.Helper()
	s := c.open()
	d, ok := s.(stores.Debtor)
	if !ok {
		c.Skipf("the store has no TakeOwing")
	}
	return s, d
}

func (c *check) takeOwing(to stores.Debtor, h stores.Hit, owed int, until time.Duration) stores.Decision {
	c.Helper()
	return c.decide("TakeOwing", h, func() (stores.Decision, error) {
		return to.TakeOwing(c.Context(), h, owed, until)
	})
}

func debtIsTaken(c *check) {
	s, to := c.debtor()
	other := c.open()
	h := c.fixed(10, long)
	c.want("TakeOwing", h, c.takeOwing(to, h, 3, long), true, 6)
	c.allow(other, h, 5)
	h = costing(h, 2)
	c.want("TakeOwing", h, c.takeOwing(to, h, 1, long), true, 2)
	c.fill(s, costing(h, 1), 2)
}

// debtSaturates raises the quota to see the level, with room for the one refusal
// before: a store may count refusals as used once the quota is raised.
func debtSaturates(c *check) {
	for _, owed := range []int{5, 6, 1000, maxQuota, math.MaxInt} {
		s, to := c.debtor()
		h := c.fixed(5, long)
		c.allow(s, h, 4)
		c.want("TakeOwing", h, c.takeOwing(to, h, owed, long), false, 0)
		h = costing(withQuota(h, 12), 6)
		if d := c.take(s, h); !d.Allowed {
			c.Fatalf("Take %s after a payment of %d to a quota of 5: %s: want it allowed, since 5 was all that could be paid", describe(h), owed, state(d))
		}
	}
}

func debtOfARefusedHit(c *check) {
	s, to := c.debtor()
	h := c.fixed(5, long)
	c.allow(s, h, 4)
	h = costing(h, 3)
	c.want("TakeOwing", h, c.takeOwing(to, h, 2, long), false, 2)
	c.fill(s, costing(h, 1), 2)
	h = c.fixed(2, long)
	c.want("TakeOwing", h, c.takeOwing(to, h, 2, long), false, 0)
	c.refuse(s, h, 0)
	c.refuse(c.open(), h, 0)
}

func debtOpensShort(c *check) {
	s, to := c.debtor()
	const until = long / 3
	h := c.fixed(5, long)
	w := c.opening(h)
	w.endsWithin(c.takeOwing(to, h, 3, until), until)
	c.sleep(50 * grain)
	w.endsWithin(c.allow(s, h, 0), until)
	c.sleep(50 * grain)
	w.endsWithin(c.refuse(s, h, 0), until)

	// The offender is held until then, and then let in.
	c.patiently(instant, func(until time.Duration) bool {
		h := c.fixed(3, long)
		w := c.opening(h)
		d := c.takeOwing(to, h, 3, until)
		c.want("TakeOwing", h, d, false, 0)
		w.endsWithin(d, until)
		c.sleep(until / 2)
		d = c.take(s, h)
		if _, most := c.since(w.opened); most >= until-grain {
			return false
		}
		c.want("Take", h, d, false, 0)
		c.sleepUntil(w.opened, until+grain)
		w = c.opening(h)
		c.fill(s, h, 3)
		c.sleep(50 * grain)
		w.ends(c.refuse(s, h, 0)) // its own hit opened this one, and it is whole
		return true
	})
}

func debtMovesNothing(c *check) {
	s, to := c.debtor()
	for _, until := range []time.Duration{20 * grain, long / 2, long} {
		h := c.fixed(5, long)
		w := c.opening(h)
		c.allow(s, h, 4)
		c.sleep(50 * grain)
		w.ends(c.takeOwing(to, h, 1, until))
		c.sleep(50 * grain)
		w.ends(c.allow(s, h, 1)) // until is over here, the window is not
		w.ends(c.takeOwing(to, h, 2, until))
		w.ends(c.refuse(s, h, 0))
	}
}

func debtParallel(c *check) {
	c.debtor()
	by := c.openMany(instances)
	h := c.fixed(flood, long)
	decisions, errs := make([]stores.Decision, flood), make([]error, flood)
	parallel(flood, func(i int) {
		decisions[i], errs[i] = by[i%len(by)].(stores.Debtor).TakeOwing(c.Context(), h, 1, long)
	})
	passed := 0
	for i, d := range decisions {
		c.must("TakeOwing", h, errs[i])
		c.judge("TakeOwing", h, d)
		if d.Allowed {
			passed++
		}
	}
	if passed != flood/2 {
		c.Fatalf("%d of %d parallel hits that owe 1 each passed on %v: want %d, since each takes 2", passed, flood, h.Limit, flood/2)
	}
	if !slices.ContainsFunc(decisions, func(d stores.Decision) bool { return d.Allowed && d.Remaining == 0 }) {
		c.Fatalf("%d hits took the whole of %v, but none had 0 remaining", passed, h.Limit)
	}
	c.refuse(by[0], h, 0)
}
