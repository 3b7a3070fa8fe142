package storetest

import (
	"time"

	"github.com/sallyport/sallyport/stores"
)

var windowClauses = []clause{
	{"exactly the quota passes", exactQuota},
	{"the first hit opens the window, not the clock", opensAtFirstHit},
	{"RetryAfter and ResetAfter name the end of the window", namesTheEnd},
	{"no hit passes before the window ends", notBeforeTheEnd},
	{"the whole quota is back in the next window", quotaIsBack},
	{"refused hits change nothing", refusedHitsChangeNothing},
	{"a steady client gets its quota in every window", steadyClient},
	{"a client slower than the limit is never refused", slowClient},
	{"a client that waits RetryAfter gets in", waitingAsTold},
}

// instant is where the clauses that wait start looking for a window that the
// machine can keep up with.
const instant = 400 * time.Millisecond

func exactQuota(c *check) {
	one, other := c.open(), c.open()
	for _, quota := range []int{1, 2, 5, 100} {
		c.fill(one, c.fixed(quota, long), quota)

		// The same with every second hit by another instance.
		h := c.fixed(quota, long)
		for i := range quota + 2 {
			s := one
			if i%2 == 1 {
				s = other
			}
			if i < quota {
				c.allow(s, h, quota-1-i)
			} else {
				c.refuse(s, h, 0)
			}
		}
	}
}

func opensAtFirstHit(c *check) {
	s := c.open()
	for range 3 {
		// An odd delay, because the clock of a bubble starts on a full hour.
		c.sleep(13_700 * time.Microsecond)
		h := c.fixed(1, long)
		w := c.opening(h)
		w.ends(c.allow(s, h, 0))
		c.sleep(20 * time.Millisecond)
		w.ends(c.refuse(s, h, 0))
	}
}

func namesTheEnd(c *check) {
	s := c.open()
	c.patiently(20*time.Millisecond, func(pause time.Duration) bool {
		h := c.fixed(2, long)
		w := c.opening(h)
		w.ends(c.allow(s, h, 1))
		c.sleep(pause)
		w.ends(c.allow(s, h, 0))
		for range 3 {
			c.sleep(pause)
			w.ends(c.refuse(s, h, 0))
		}

		// An instance that meets the key now has to learn the end from the data. In
		// the first moments of a window, as long as its own call takes, it need not.
		cold, asked := c.open(), c.now()
		d := c.refuse(cold, h, 0)
		if _, took := c.since(asked); took > pause {
			return false
		}
		w.ends(d)
		return true
	})
}

func notBeforeTheEnd(c *check) {
	s := c.open()
	c.patiently(instant, func(window time.Duration) bool {
		h := c.fixed(3, window)
		w := c.opening(h)
		if !w.fill(s, 3) {
			return false
		}
		for _, at := range []time.Duration{window / 4, window / 2, window - 2*grain} {
			c.sleepUntil(w.opened, at)
			d := c.take(s, h)
			if w.ended() {
				// The last of these is too late on most real clocks.
				return at > window/2
			}
			c.want("Take", h, d, false, 0)
		}
		return true
	})
}

func quotaIsBack(c *check) {
	one, other := c.open(), c.open()
	c.patiently(instant, func(window time.Duration) bool {
		h := c.fixed(5, window)
		w := c.opening(h)
		if !w.fill(one, 5) {
			return false
		}
		for _, s := range []stores.Store{one, other} {
			w.over()
			w = c.opening(h)
			if !w.fill(s, 5) {
				return false
			}
		}
		return true
	})
}

func refusedHitsChangeNothing(c *check) {
	s := c.open()
	c.patiently(instant, func(window time.Duration) bool {
		h := c.fixed(3, window)
		w := c.opening(h)
		if !w.fill(s, 3) {
			return false
		}
		for i := range 100 {
			if i%20 == 0 {
				c.sleep(window / 10)
			}
			d := c.take(s, h)
			if w.ended() {
				return false
			}
			c.want("Take", h, d, false, 0)
			w.ends(d)
		}
		w.over()
		w = c.opening(h)
		return w.fill(s, 3)
	})
}

// steadyClient hits twenty times in the time of a window, refused or not, by two
// instances in turn, and looks that each window opens, fills and ends.
func steadyClient(c *check) {
	const quota, windows = 5, 6
	one, other := c.open(), c.open()
	c.patiently(instant, func(window time.Duration) bool {
		h := c.fixed(quota, window)
		w := c.opening(h)
		c.allow(one, h, quota-1)
		for passed, opened := 1, 1; opened < windows; {
			one, other = other, one
			c.sleep(window / 20)
			next := c.opening(h)
			least, _ := c.since(w.opened)
			d := c.take(one, h)
			switch {
			case d.Allowed && passed < quota:
				if w.ended() {
					return false
				}
				passed++
			case d.Allowed && !w.ended():
				c.Fatalf("Take %v: %s, but %d hits had passed in this window: want the quota and no more", h.Limit, state(d), passed)
			case d.Allowed:
				w, passed = next, 1
				opened++
			case passed < quota:
				c.Fatalf("Take %v: %s, but only %d hits had passed in window %d: want the whole quota in every window", h.Limit, state(d), passed, opened)
			case least > window+grain:
				c.Fatalf("Take %v: %s, %v after the window opened: hits, refused or not, never prolong a window", h.Limit, state(d), least)
			}
		}
		return true
	})
}

// slowClient hits 4.9 times in the time of a window, of which 5 are allowed.
func slowClient(c *check) {
	s := c.open()
	h := c.fixed(5, instant)
	for i := range 16 {
		if d := c.take(s, h); !d.Allowed {
			c.Fatalf("Take %v: %s, but the client's hit %d came %v after the one before: five of them take longer than a window", h.Limit, state(d), i+1, h.Limit.Window*10/49)
		}
		c.sleep(h.Limit.Window * 10 / 49)
	}
}

func waitingAsTold(c *check) {
	s := c.open()
	c.patiently(instant/2, func(window time.Duration) bool {
		h := c.fixed(2, window)
		w := c.opening(h)
		c.allow(s, h, 1)
		for range 5 {
			// Some part of a millisecond, so that what is rounded down shows.
			c.sleep(window/7 + 333_333)
			d := c.take(s, h)
			if w.ended() {
				return false
			}
			c.want("Take", h, d, true, 0)
			c.sleep(window/7 + 333_333)
			d = c.take(s, h)
			if w.ended() {
				return false
			}
			c.want("Take", h, d, false, 0)
			c.sleep(d.RetryAfter)
			w = c.opening(h)
			if next := c.take(s, h); !next.Allowed {
				c.Fatalf("Take %v: %s, after a wait of %v as the refusal before had said: want it allowed", h.Limit, state(next), d.RetryAfter)
			}
		}
		return true
	})
}
