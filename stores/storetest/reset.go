package storetest

import "github.com/sallyport/sallyport/stores"

var resetClauses = []clause{
	{"Reset forgets the key, for all instances", resetForgets},
	{"Reset forgets no other key", resetThisKeyOnly},
	{"after Reset the next hit opens a new window", resetOpensAnew},
	{"Reset of a key that is not there is no error", resetMissing},
}

func (c *check) resetter() (stores.Store, stores.Resetter) {
	c.Helper()
	s := c.open()
	r, ok := s.(stores.Resetter)
	if !ok {
		c.Skipf("the store has no Reset")
	}
	return s, r
}

func (c *check) reset(r stores.Resetter, h stores.Hit) {
	c.Helper()
	c.must("Reset", h, r.Reset(c.Context(), h))
}

// resetForgets asks another instance too, but one that has refused nobody: a store
// may remember refusals for a while.
func resetForgets(c *check) {
	s, r := c.resetter()
	other := c.open()
	h := c.fixed(3, long)
	c.allow(other, h, 2)
	c.fill(s, h, 2)
	c.reset(r, h)
	c.allow(other, h, 2)
	c.fill(s, h, 2)
	c.reset(r, costing(h, 7)) // the cost is ignored
	c.fill(s, h, 3)
}

func resetThisKeyOnly(c *check) {
	s, r := c.resetter()
	h, neighbour := c.fixed(2, long), c.fixed(2, long)
	neighbour.Key = h.Key + "x"
	c.fill(s, h, 2)
	c.fill(s, neighbour, 2)
	c.reset(r, h)
	c.fill(s, h, 2)
	c.refuse(s, neighbour, 0)
}

func resetOpensAnew(c *check) {
	s, r := c.resetter()
	h := c.fixed(1, long)
	c.fill(s, h, 1)
	c.sleep(50 * grain)
	c.reset(r, h)
	c.sleep(50 * grain)
	w := c.opening(h)
	w.ends(c.allow(s, h, 0))
	c.sleep(50 * grain)
	w.ends(c.refuse(s, h, 0))
}

func resetMissing(c *check) {
	s, r := c.resetter()
	h := c.fixed(1, long)
	c.reset(r, h)
	c.fill(s, h, 1)
	c.reset(r, h)
	c.reset(r, h)
	c.fill(s, h, 1)
}
