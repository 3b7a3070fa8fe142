package storetest

import (
	"errors"

	"github.com/sallyport/sallyport/stores"
)

var batchClauses = []clause{
	{"TakeAll takes every hit when all are allowed", batchAllowed},
	{"TakeAll stops at the first refusal and charges none behind it", batchStops},
	{"TakeAll counts a key that it holds twice, twice", batchTwice},
	{"TakeAll leaves what is behind an invalid hit uncounted", batchInvalid},
	{"parallel TakeAlls pass exactly the quota", batchParallel},
}

func (c *check) batcher() (stores.Store, stores.Batcher) {
	c.Helper()
	s := c.open()
	b, ok := s.(stores.Batcher)
	if !ok {
		c.Skipf("the store has no TakeAll")
	}
	return s, b
}

// takeAll returns what was decided, and wants n decisions. It clears the slices
// afterwards, since TakeAll keeps neither.
func (c *check) takeAll(b stores.Batcher, n int, hits ...stores.Hit) []stores.Decision {
	c.Helper()
	out := make([]stores.Decision, len(hits)+2) // longer than needed is fine
	asked := append([]stores.Hit(nil), hits...)
	got, err := b.TakeAll(c.Context(), asked, out)
	for i := range asked {
		if asked[i] != hits[i] {
			c.Fatalf("TakeAll changed hits[%d]", i)
		}
	}
	clear(asked)
	if err != nil {
		c.must("TakeAll", hits[min(max(got, 0), len(hits)-1)], err)
	}
	if got != n {
		c.Fatalf("TakeAll of %d hits: n is %d: want %d", len(hits), got, n)
	}
	decided := append([]stores.Decision(nil), out[:n]...)
	clear(out)
	for i, d := range decided {
		if uncharged(d, decided) {
			continue
		}
		c.judge("TakeAll", hits[i], d)
		if last := i == n-1; !d.Allowed && !last {
			c.Fatalf("TakeAll of %d hits: hit %d was refused, and hit %d behind it tried", len(hits), i, i+1)
		}
	}
	return decided
}

// uncharged reports whether d stands before a refusal that the store remembered: it
// may then tell of no hit at all, so that a client who is refused anyway uses up no
// limit that others share.
func uncharged(d stores.Decision, decided []stores.Decision) bool {
	last := decided[len(decided)-1]
	return d.Source == stores.None && d.Allowed && !last.Allowed && last.Source == stores.Remembered
}

func batchAllowed(c *check) {
	s, b := c.batcher()
	n, err := b.TakeAll(c.Context(), nil, nil)
	c.must("TakeAll", stores.Hit{}, err)
	if n != 0 {
		c.Fatalf("TakeAll of no hits: n is %d: want 0", n)
	}
	hits := []stores.Hit{c.fixed(5, long), costing(c.fixed(10, 2*long), 4), c.fixed(1, long/2)}
	for i, d := range c.takeAll(b, 3, hits...) {
		c.want("TakeAll", hits[i], d, true, []int{4, 6, 0}[i])
	}
	c.fill(s, hits[0], 4)
	c.fill(s, costing(hits[1], 1), 6)
	c.refuse(s, hits[2], 0)
}

func batchStops(c *check) {
	s, b := c.batcher()
	before, full, behind := c.fixed(50, long), c.fixed(2, long), c.fixed(3, long)
	c.fill(s, full, 2)
	left := 50
	for range 20 {
		d := c.takeAll(b, 2, before, full, behind, full)
		if !uncharged(d[0], d) {
			left--
			c.want("TakeAll", before, d[0], true, left)
		}
		c.want("TakeAll", full, d[1], false, 0)
	}
	c.fill(s, before, left)
	c.fill(s, behind, 3)

	// The same for a cost for which there is no room, and for one that can't pass.
	before, short, behind := c.fixed(50, long), c.fixed(5, long), c.fixed(3, long)
	c.allow(s, costing(short, 3), 2)
	left = 50
	for _, cost := range []int{3, 3, 6} {
		if d := c.takeAll(b, 2, before, costing(short, cost), behind); !uncharged(d[0], d) {
			left--
		}
	}
	c.takeAll(b, 1, costing(short, 6), before, behind)
	c.fill(s, before, left)
	c.fill(s, short, 2)
	c.fill(s, behind, 3)
}

func batchTwice(c *check) {
	s, b := c.batcher()
	h, behind := c.fixed(2, long), c.fixed(1, long)
	d := c.takeAll(b, 3, h, h, h, behind)
	c.want("TakeAll", h, d[0], true, 1)
	c.want("TakeAll", h, d[1], true, 0)
	c.want("TakeAll", h, d[2], false, 0)
	c.refuse(s, h, 0)
	c.allow(s, behind, 0)
}

// batchInvalid allows both ways to meet an invalid hit: before any is taken, or
// when its turn comes.
func batchInvalid(c *check) {
	s, b := c.batcher()
	for _, bad := range invalidVariants(c.fixed(5, long)) {
		before, behind := c.fixed(3, long), c.fixed(3, long)
		n, err := b.TakeAll(c.Context(), []stores.Hit{before, bad.hit, behind}, make([]stores.Decision, 3))
		if errors.Is(err, errors.ErrUnsupported) {
			c.must("TakeAll", bad.hit, err)
		}
		if !errors.Is(err, stores.ErrInvalid) || n < 0 || n > 1 {
			c.Fatalf("TakeAll with %s at 1: n is %d, error %v: want 0 or 1, and an error that wraps ErrInvalid", bad.what, n, err)
		}
		c.allow(s, before, 2-n)
		c.allow(s, behind, 2)
	}
}

// batchParallel gives each caller a key of its own behind the one they share: what
// the refused callers own must stay untouched.
func batchParallel(c *check) {
	s, _ := c.batcher()
	by := c.openMany(instances)
	for range rounds / 4 {
		h := c.fixed(5, long)
		own := make([]stores.Hit, flood)
		for i := range own {
			own[i] = c.fixed(2, long)
		}
		shared, errs, ns := make([]stores.Decision, flood), make([]error, flood), make([]int, flood)
		parallel(flood, func(i int) {
			var out [2]stores.Decision
			ns[i], errs[i] = by[i%len(by)].(stores.Batcher).TakeAll(c.Context(), []stores.Hit{h, own[i]}, out[:])
			shared[i] = out[0]
		})
		for i, err := range errs {
			c.must("TakeAll", h, err)
			c.judge("TakeAll", h, shared[i])
			charged := 0
			if shared[i].Allowed {
				charged = 1
			}
			if ns[i] != 1+charged {
				c.Fatalf("TakeAll of 2 hits, the first %s: n is %d: want %d", verdict(shared[i].Allowed), ns[i], 1+charged)
			}
			c.allow(s, own[i], 1-charged)
		}
		c.wantExactly(h, shared)
	}
}
