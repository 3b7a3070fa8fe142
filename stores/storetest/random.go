package storetest

import (
	"math/rand/v2"
	"time"

	"github.com/sallyport/sallyport/stores"
)

var randomClauses = []clause{
	{"random steps by two instances are answered as the limits mean", randomSteps},
}

// walker is a key that has random things done to it.
type walker struct {
	*twin
	limit                         stores.Limit
	peeks, resets, refunds, debts bool
}

// randomSteps walks over every limit that the store serves at once, so that the time
// that passes serves them all.
func randomSteps(c *check) {
	one, other := c.open(), c.open()
	c.patiently(instant, func(window time.Duration) bool {
		walkers := c.walkers(one, window)
		if len(walkers) == 0 {
			c.Skipf("the store serves no limit")
		}
		anew := 0
		for range 500 {
			w := walkers[rand.IntN(len(walkers))]
			if rand.IntN(3) == 0 {
				c.sleep(rand.N(window / 24))
			}
			one, other = other, one
			w.step(one)
			if w.lost || w.slack > window/20 {
				w.twin = c.twin(w.limit)
				anew++
			}
		}
		return anew < 100
	})
}

func (c *check) walkers(s stores.Store, window time.Duration) (all []*walker) {
	c.Helper()
	for _, block := range []time.Duration{0, window / 3} {
		for _, f := range allForms {
			l := f.limit(10, window).BlockFor(block)
			if !c.serves(s, l) {
				continue
			}
			all = append(all, &walker{
				twin:    c.twin(l),
				limit:   l,
				peeks:   !c.lacks(s, "Peek", l),
				resets:  !c.lacks(s, "Reset", l),
				refunds: !c.lacks(s, "Refund", l),
				debts:   !c.lacks(s, "TakeOwing", l),
			})
		}
	}
	return all
}

func (w *walker) step(s stores.Store) {
	w.c.Helper()
	w.clear(true)
	if quota := []int{4, 5, 10, 20}[rand.IntN(4)]; rand.IntN(12) == 0 && w.mayHave(quota) {
		w.withQuota(quota)
	}
	w.costing(rand.IntN(5))
	n := rand.IntN(20)
	w.clear(n < 2 || n > 6)
	switch {
	case n < 2 && w.peeks:
		w.peek(s.(stores.Peeker))
	case n < 4 && w.refunds:
		w.refund(s.(stores.Refunder))
	case n < 6 && w.debts:
		w.takeOwing(s.(stores.Debtor), rand.IntN(4), w.limit.Window/16+rand.N(w.limit.Window*15/16))
	case n == 6 && w.resets:
		w.reset(s.(stores.Resetter))
		w.withQuota(w.limit.Quota)
	default:
		w.take(s)
	}
}

// mayHave: a fixed window may count refusals as used once its quota is raised.
func (w *walker) mayHave(quota int) bool {
	return w.limit.Algorithm != stores.Fixed || w.limit.Block > 0 || quota < w.hit.Limit.Quota
}
