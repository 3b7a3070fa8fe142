package storetest

import "math"

var costClauses = []clause{
	{"a hit takes its cost, and a cost of 0 is 1", takesItsCost},
	{"a refused cost leaves room for cheaper hits", refusedCostLeavesRoom},
	{"a cost above the quota is refused at once and counts nothing", costAboveQuota},
}

func takesItsCost(c *check) {
	one, other := c.open(), c.open()
	h := c.fixed(10, long)
	c.allow(one, costing(h, 3), 7)
	c.allow(other, costing(h, 0), 6)
	c.allow(one, costing(h, 1), 5)
	c.allow(other, costing(h, 5), 0)
	c.refuse(one, h, 0)
	c.refuse(other, costing(h, 10), 0)
}

func refusedCostLeavesRoom(c *check) {
	s := c.open()
	h := c.fixed(5, long)
	c.allow(s, costing(h, 3), 2)
	for range 20 {
		c.refuse(s, costing(h, 5), 2)
		c.refuse(s, costing(h, 3), 2)
	}
	c.allow(s, h, 1)
	c.refuse(s, costing(h, 2), 1)
	c.allow(s, h, 0)
	c.refuse(s, h, 0)
}

// costAboveQuota includes the largest cost, with which used + cost overflows.
func costAboveQuota(c *check) {
	s := c.open()
	h := c.fixed(5, long)
	for _, cost := range []int{6, 1000, math.MaxInt} {
		// What remains is not asked for: such a hit is refused without a look.
		if d := c.take(s, costing(h, cost)); d.Allowed {
			c.Fatalf("Take %s: %s", describe(costing(h, cost)), state(d))
		}
	}
	c.allow(s, h, 4)
	for _, cost := range []int{6, math.MaxInt - 1, math.MaxInt} {
		c.take(s, costing(h, cost))
	}
	c.fill(s, h, 4)
	c.take(s, costing(h, math.MaxInt))
	c.refuse(s, h, 0)
}
