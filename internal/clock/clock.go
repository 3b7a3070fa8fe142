// Package clock is the process's own time, for durations only.
package clock

import (
	"sync"
	"time"
)

// tolerance is by how much the wall clock has to run ahead of the monotonic one, or
// fall behind it, before that counts. The two are read one after the other, and a
// thread may be put aside in between; if each such difference counted, a flood of
// readings would make time run faster, and every window shorter.
const tolerance = 50 * time.Millisecond

// Clock counts nanoseconds that never go back. It follows the monotonic clock, and
// where the wall clock made a larger step it follows that: a monotonic clock may
// have stood still while a serverless instance was frozen. A wall clock that is set
// back changes nothing; one that is set forward looks like time gone by.
//
// The zero Clock is ready for use and is safe for concurrent use.
type Clock struct {
	mu   sync.Mutex
	base time.Time // the first reading; carries the monotonic clock
	last time.Duration
	// ahead is by how much the wall clock was ahead of the monotonic one when that
	// last counted, and skipped is the sum of what counted.
	ahead, skipped time.Duration
}

// Now returns the nanoseconds since the first reading, plus 1.
func (c *Clock) Now() int64 { return c.At(time.Now()) }

// At is Now for a reading of time.Now that the caller took. Readings may arrive in
// another order than they were taken in; an older one moves nothing.
func (c *Clock) At(t time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base.IsZero() {
		c.base = t
	}
	mono := t.Sub(c.base)
	ahead := time.Duration(t.UnixNano()-c.base.UnixNano()) - mono
	if mono < c.last || mono == c.last && ahead < c.ahead {
		return int64(c.last+c.skipped) + 1
	}
	c.last = mono
	switch {
	case ahead > c.ahead+tolerance:
		c.skipped += ahead - c.ahead
		c.ahead = ahead
	case ahead < c.ahead-tolerance:
		c.ahead = ahead
	}
	return int64(c.last+c.skipped) + 1
}
