package storetest

import (
	"math"
	"time"

	"github.com/sallyport/sallyport/stores"
)

var peekClauses = []clause{
	{"Peek answers as Take would", peekForetells},
	{"Peek counts nothing", peekCountsNothing},
	{"Peek opens no window and prolongs none", peekMovesNothing},
}

func (c *check) peeker() (stores.Store, stores.Peeker) {
	c.Helper()
	s := c.open()
	p, ok := s.(stores.Peeker)
	if !ok {
		c.Skipf("the store has no Peek")
	}
	return s, p
}

func (c *check) peek(p stores.Peeker, h stores.Hit) stores.Decision {
	c.Helper()
	return c.decide("Peek", h, func() (stores.Decision, error) { return p.Peek(c.Context(), h) })
}

func peekForetells(c *check) {
	s, p := c.peeker()
	_, other := c.peeker()
	h := c.fixed(5, long)
	w := c.opening(h)
	for used, cost := range []int{1, 0, 1, 1, 1} {
		hit := costing(h, cost)
		c.want("Peek", hit, c.peek(p, hit), true, 5-used)
		c.want("Peek", hit, c.peek(other, hit), true, 5-used)
		c.allow(s, hit, 4-used)
	}
	c.sleep(50 * grain)
	for _, from := range []stores.Peeker{p, other} {
		d := c.peek(from, h)
		c.want("Peek", h, d, false, 0)
		w.ends(d)
	}
	w.ends(c.refuse(s, h, 0))

	h = c.fixed(5, long)
	c.allow(s, h, 4)
	c.allow(s, h, 3)
	c.want("Peek", costing(h, 3), c.peek(p, costing(h, 3)), true, 3)
	c.want("Peek", costing(h, 4), c.peek(p, costing(h, 4)), false, 3)
	c.peek(p, costing(h, 6))
	c.peek(p, costing(h, math.MaxInt))
	c.fill(s, h, 3)
}

func peekCountsNothing(c *check) {
	s, p := c.peeker()
	h := c.fixed(3, long)
	for range 100 {
		c.want("Peek", h, c.peek(p, h), true, 3)
	}
	c.allow(s, h, 2)
	for range 100 {
		c.want("Peek", h, c.peek(p, h), true, 2)
	}
	c.fill(s, h, 2)
	for range 100 {
		c.want("Peek", h, c.peek(p, h), false, 0)
	}
}

func peekMovesNothing(c *check) {
	s, p := c.peeker()
	h := c.fixed(1, long)
	c.peek(p, h)
	c.sleep(50 * grain)
	w := c.opening(h)
	w.ends(c.allow(s, h, 0))
	for range 5 {
		c.sleep(50 * grain)
		w.ends(c.peek(p, h))
	}
	w.ends(c.refuse(s, h, 0))

	c.patiently(instant, func(window time.Duration) bool {
		h := c.fixed(2, window)
		w := c.opening(h)
		if !w.fill(s, 2) {
			return false
		}
		for range 8 {
			c.sleep(window / 10)
			c.peek(p, h)
		}
		w.over()
		c.want("Peek", h, c.peek(p, h), true, 2)
		w = c.opening(h)
		return w.fill(s, 2)
	})
}
