package storetest

var formOptionalClauses = []formClause{
	{"Peek answers as Take would and writes nothing", formPeek},
	{"Reset forgets the key, for all instances", formReset},
}

// formPeek lets time pass between looks, so that what a look opens or prolongs shows
// in the answers of the hits.
func formPeek(c *check, f form) {
	s, p := c.peeker()
	_, other := c.peeker()
	w := c.twin(f.limit(5, long))
	for left := 5; left > 0; left-- {
		for range 5 {
			c.want("Peek", w.hit, w.peek(p), true, left)
			c.want("Peek", w.hit, w.peek(other), true, left)
			w.costing(5 - left + 1)
			w.peek(p)
			w.costing(1)
		}
		c.sleep(5 * grain)
		c.want("Take", w.hit, w.take(s), true, left-1)
	}
	for range 10 {
		c.sleep(5 * grain)
		c.want("Peek", w.hit, w.peek(p), false, 0)
		c.want("Peek", w.hit, w.peek(other), false, 0)
	}
	c.want("Take", w.hit, w.take(s), false, 0)
}

// formReset asks another instance too, but one that has refused nobody.
func formReset(c *check, f form) {
	s, r := c.resetter()
	other := c.open()
	w, neighbour := c.twin(f.limit(3, long)), c.hit(f, 2, long)
	w.reset(r)
	c.want("Take", w.hit, w.take(other), true, 2)
	c.fill(s, w.costing(1).hit, 2)
	c.fill(s, neighbour, 2)
	w.costing(7).reset(r) // the cost is ignored
	c.sleep(50 * grain)
	c.want("Take", w.hit, w.costing(1).take(other), true, 2)
	c.want("Take", w.hit, w.costing(2).take(s), true, 0)
	c.want("Take", w.hit, w.costing(1).take(other), false, 0)
	c.refuse(s, neighbour, 0)
}
