package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/sallyport/sallyport/stores"
)

var blockClauses = []clause{
	{"whoever exceeds the limit is refused for so long, and hits meanwhile prolong nothing", blockHolds},
	{"a block lasts at least until the hit that started it would pass", blockCoversTheWait},
	{"neither Peek nor a cost above the quota starts a block", blockNotStarted},
	{"neither Refund nor a payment touches a block", blockStands},
	{"Reset lifts a block", blockLifted},
	{"parallel hits pass exactly the quota and start one block", blockParallel},
	{"a refusal in TakeAll starts a block", blockInTakeAll},
}

// blockTwins returns a twin for each algorithm that the store serves with a block.
func (c *check) blockTwins(s stores.Store, quota int, window, block time.Duration) (twins []*twin) {
	c.Helper()
	change := func(l stores.Limit) stores.Limit { return l.BlockFor(block) }
	for _, f := range c.supported(s, change) {
		twins = append(twins, c.twin(change(f.limit(quota, window))))
	}
	return twins
}

func anyLost(twins []*twin) bool {
	return slices.ContainsFunc(twins, func(w *twin) bool { return w.lost })
}

// each does the same with each twin.
func each(twins []*twin, do func(*twin)) {
	for _, w := range twins {
		do(w)
	}
}

// blockHolds has blocks longer than the window: the limit below them has room again
// before they end.
func blockHolds(c *check) {
	one, other := c.open(), c.open()
	c.patiently(instant, func(block time.Duration) bool {
		twins := c.blockTwins(one, 3, block/2, block)
		last := make(map[*twin]stores.Decision)
		each(twins, func(w *twin) {
			w.take(one)
			w.costing(2).take(one)
			w.costing(1).take(one)
		})
		for range 7 {
			c.sleep(block / 9)
			one, other = other, one
			each(twins, func(w *twin) {
				w.costing(3).take(one)
				last[w] = w.costing(1).take(one)
			})
		}
		judged := !anyLost(twins)
		var longest time.Duration
		for _, d := range last {
			longest = max(longest, d.RetryAfter)
		}
		c.sleep(longest)
		each(twins, func(w *twin) {
			if judged {
				c.allow(one, costing(w.hit, 3), 0) // all has come back meanwhile
			}
		})
		return judged
	})
}

func blockCoversTheWait(c *check) {
	s := c.open()
	each(c.blockTwins(s, 4, long, 20*time.Minute), func(w *twin) {
		w.costing(4).take(s)
		w.costing(2).take(s) // for a bucket half an hour, else an hour
		c.sleep(5 * grain)
		w.costing(1).take(s)
		w.costing(4).take(s)
	})
}

func blockNotStarted(c *check) {
	s := c.open()
	p, _ := s.(stores.Peeker)
	c.patiently(instant/2, func(window time.Duration) bool {
		twins := c.blockTwins(s, 2, window, long)
		var longest time.Duration
		each(twins, func(w *twin) {
			longest = max(longest, w.costing(2).take(s).ResetAfter)
			w.costing(3).take(s)
			if p != nil && !c.lacks(s, "Peek", w.hit.Limit) {
				w.costing(1).peek(p)
				w.costing(2).peek(p)
			}
			w.costing(3).take(s)
		})
		c.sleep(longest + window/8)
		each(twins, func(w *twin) {
			if d := w.costing(2).take(s); !d.Allowed {
				c.Fatalf("Take %v: %s, when the quota is back: want no block, since no hit was refused that may ever pass", describe(w.hit), state(d))
			}
		})
		return !anyLost(twins)
	})
}

func blockStands(c *check) {
	s, r := c.refunder()
	to, _ := s.(stores.Debtor)
	other := c.open()
	each(c.blockTwins(s, 4, long, long/2), func(w *twin) {
		if c.lacks(s, "Refund", w.hit.Limit) {
			return
		}
		w.take(s)
		w.costing(4).take(s)
		c.sleep(5 * grain)
		w.costing(4).refund(r)
		w.costing(1).take(s)
		w.take(other)
		if to != nil && !c.lacks(s, "TakeOwing", w.hit.Limit) {
			w.takeOwing(to, 4, long)
			w.take(other)
		}
	})
}

// blockLifted asks another instance too, but one that has refused nobody.
func blockLifted(c *check) {
	s, r := c.resetter()
	other := c.open()
	each(c.blockTwins(s, 2, long, 2*long), func(w *twin) {
		if c.lacks(s, "Reset", w.hit.Limit) {
			return
		}
		w.costing(2).take(s)
		w.costing(1).take(s)
		w.reset(r)
		c.want("Take", w.hit, w.take(other), true, 1)
		c.want("Take", w.hit, w.take(s), true, 0)
		c.want("Take", w.hit, w.take(s), false, 0)
	})
}

func blockParallel(c *check) {
	by := c.openMany(instances)
	for _, f := range c.supported(by[0], func(l stores.Limit) stores.Limit { return l.BlockFor(2 * long) }) {
		h := c.hit(f, 5, long)
		h.Limit = h.Limit.BlockFor(2 * long)
		start := c.now()
		c.wantExactly(h, c.storm(by, slices.Repeat([]stores.Hit{h}, flood)))
		for slept := 5 * grain; slept <= 20*grain; slept += 5 * grain {
			c.sleep(5 * grain)
			d := c.refuse(by[0], h, 0)
			_, now := c.since(start)
			if least, latest := 2*long-now-grain, 2*long-slept+grain; d.RetryAfter < least || d.RetryAfter > latest {
				c.Fatalf("Take %v: %s, %v to %v after the hits that exceeded it: want a RetryAfter of %v to %v", h.Limit, state(d), slept, now, least, latest)
			}
		}
	}
}

func blockInTakeAll(c *check) {
	s, b := c.batcher()
	for _, f := range c.supported(s, func(l stores.Limit) stores.Limit { return l.BlockFor(2 * long) }) {
		h := c.hit(f, 2, long)
		h.Limit = h.Limit.BlockFor(2 * long)
		if n, err := b.TakeAll(c.Context(), []stores.Hit{costing(h, 2)}, make([]stores.Decision, 1)); errors.Is(err, errors.ErrUnsupported) && n == 0 {
			continue
		}
		before, behind := c.fixed(5, long), c.fixed(5, long)
		d := c.takeAll(b, 2, before, h, behind)[1]
		c.want("TakeAll", h, d, false, 0)
		if d.RetryAfter < 2*long-time.Minute {
			c.Fatalf("TakeAll %v: %s: want a block of %v to start", h.Limit, state(d), h.Limit.Block)
		}
		if d = c.refuse(s, h, 0); d.RetryAfter < 2*long-time.Minute {
			c.Fatalf("Take %v: %s: want the block that TakeAll started", h.Limit, state(d))
		}
		c.allow(s, behind, 4)
	}
}
