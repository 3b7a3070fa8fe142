package storetest

import (
	"time"

	"github.com/sallyport/sallyport/stores"
)

// grain is how far a store that counts in whole milliseconds may be off at the two
// ends of a duration.
const grain = 2 * time.Millisecond

// passage adds up the time that has passed for the store. It is known between
// bounds only: at least what the clause slept, at most that and the real time that
// the calls took and that the sleeps took too long. This holds whether Sleep is
// real or moves a clock that stands still otherwise.
type passage struct {
	asked time.Duration // by sleep
	short time.Duration // what of it was asked of a clock that is not the real one
}

// moment is a point in a clause's time.
type moment struct {
	real    time.Time
	passage passage
}

func (c *check) now() moment { return moment{time.Now(), c.passage} }

// since returns the bounds of the time that has passed since m.
func (c *check) since(m moment) (least, most time.Duration) {
	least = c.passage.asked - m.passage.asked
	most = time.Since(m.real) + c.passage.short - m.passage.short
	return least, most
}

func (c *check) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	start := time.Now()
	if c.backend.Sleep != nil {
		c.backend.Sleep(d)
	} else {
		time.Sleep(d)
	}
	c.passage.asked += d
	if time.Since(start) < d {
		// A clock that is moved on may go on by itself all the while.
		c.passage.short += d
	}
}

// sleepUntil sleeps until at least d has passed since m.
func (c *check) sleepUntil(m moment, d time.Duration) {
	least, _ := c.since(m)
	c.sleep(d - least)
}

// patiently runs f, and again with twice the duration as long as f reports that
// too much time went by for a judgement. So a slow machine costs time, not a
// verdict.
func (c *check) patiently(d time.Duration, f func(d time.Duration) (judged bool)) {
	c.Helper()
	const tries = 6
	for range tries {
		if f(d) {
			return
		}
		d *= 2
	}
	c.Fatalf("in %d tries the calls took too long to judge them, the last time with %v to spare", tries, d/2)
}

// span is one window of a hit's limit, open since some moment before the first hit.
type span struct {
	c      *check
	hit    stores.Hit
	opened moment
}

// opening returns the span of the window that the next hit opens.
func (c *check) opening(h stores.Hit) span { return span{c, h, c.now()} }

// ended reports whether the window may be over.
func (w span) ended() bool {
	_, most := w.c.since(w.opened)
	return most >= w.hit.Limit.Window-grain
}

// over lets the window end.
func (w span) over() { w.c.sleepUntil(w.opened, w.hit.Limit.Window+grain) }

// fill is check.fill within the window. It returns false if the window may have
// ended before the last answer, because then the answers tell nothing.
func (w span) fill(s stores.Store, room int) bool {
	w.c.Helper()
	for left := room - 1; left >= -1; left-- {
		d := w.c.take(s, w.hit)
		if w.ended() {
			return false
		}
		w.c.want("Take", w.hit, d, left >= 0, max(left, 0))
	}
	return true
}

// ends checks that d says when the window ends.
func (w span) ends(d stores.Decision) {
	w.c.Helper()
	w.endsWithin(d, w.hit.Limit.Window)
}

// endsWithin is ends for a window of another length. A store over a network need not
// tell a refusal by an old window from one by a new window that opened while the
// call was under way, and may then say to come back earlier.
func (w span) endsWithin(d stores.Decision, length time.Duration) {
	w.c.Helper()
	least, most := w.c.since(w.opened)
	earliest, latest := max(0, length-most-grain), min(length, length-least+grain)
	if !d.Allowed && least < w.c.took+grain {
		earliest = 0
	}
	if d.ResetAfter < earliest || d.ResetAfter > latest {
		w.c.Fatalf("%s: %s, %v to %v after a window of %v opened: want a ResetAfter of %v to %v",
			describe(w.hit), state(d), least, most, length, earliest, latest)
	}
	if !d.Allowed && (d.RetryAfter < earliest || d.RetryAfter > latest) {
		w.c.Fatalf("%s: %s, %v to %v after a window of %v opened: want a RetryAfter of %v to %v",
			describe(w.hit), state(d), least, most, length, earliest, latest)
	}
}
