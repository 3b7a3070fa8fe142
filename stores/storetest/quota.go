package storetest

var quotaClauses = []clause{
	{"a raised quota applies at once and keeps what was counted", raisedQuota},
	{"a lowered quota applies at once and keeps what was counted", loweredQuota},
	{"another quota does not move the window's end", quotaKeepsTheEnd},
}

// raisedQuota raises before anything was refused: a store may count the refusals
// of this window as used once the quota is raised.
func raisedQuota(c *check) {
	one, other := c.open(), c.open()
	h := c.fixed(5, long)
	c.allow(one, h, 4)
	c.allow(one, h, 3)
	c.allow(one, h, 2)
	raised := withQuota(h, 10)
	c.allow(other, raised, 6)
	c.allow(one, raised, 5)
	c.fill(one, raised, 5)
}

func loweredQuota(c *check) {
	one, other := c.open(), c.open()
	h := c.fixed(10, long)
	c.allow(one, h, 9)
	c.allow(one, h, 8)
	c.allow(one, h, 7)
	c.allow(one, withQuota(h, 5), 1)
	c.allow(other, withQuota(h, 5), 0)
	c.refuse(one, withQuota(h, 5), 0)
	c.refuse(other, withQuota(h, 2), 0)
	c.refuse(one, withQuota(h, 1), 0)
}

func quotaKeepsTheEnd(c *check) {
	s := c.open()
	h := c.fixed(2, long)
	w := c.opening(h)
	c.allow(s, h, 1)
	c.sleep(50 * grain)
	w.ends(c.allow(s, withQuota(h, 3), 1))
	c.sleep(50 * grain)
	w.ends(c.refuse(s, withQuota(h, 1), 0))
}
