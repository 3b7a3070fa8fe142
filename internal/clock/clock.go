// Package clock is the process's own time, for durations only.
package clock

import (
	"sync"
	"time"
)

// Clock counts nanoseconds that never go back. Between two readings it advances by
// the larger of the steps that the monotonic and the wall clock made: a monotonic
// clock may have stood still while a serverless instance was frozen, and a wall
// clock may be set back. What it costs to believe both: a wall clock that is set
// forward looks like time gone by.
//
// The zero Clock is ready for use and is safe for concurrent use.
type Clock struct {
	mu         sync.Mutex
	base       time.Time // of the first reading; carries the monotonic clock
	mono, wall int64     // of the latest reading, in ns
	elapsed    int64
}

// Now returns the nanoseconds since a moment before the first reading. It is at
// least 1.
func (c *Clock) Now() int64 { return c.At(time.Now()) }

// At is Now for a reading of time.Now that the caller took.
//
// Readings may arrive in another order than they were taken in. An older one moves
// nothing: had it moved the mark back, the next step would count that time twice.
func (c *Clock) At(t time.Time) int64 {
	wall := t.UnixNano()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.elapsed == 0 {
		c.base, c.wall, c.elapsed = t, wall, 1
		return c.elapsed
	}
	mono := int64(t.Sub(c.base))
	if mono < c.mono {
		return c.elapsed
	}
	step := max(mono-c.mono, wall-c.wall)
	c.mono, c.wall = mono, wall
	if step > 0 {
		c.elapsed += step
	}
	return c.elapsed
}
