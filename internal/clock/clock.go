// Package clock is the process's own time, for durations only.
package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// tolerance is by how much the wall clock has to run ahead of the monotonic one, or
// fall behind it, before that counts. The two are read one after the other, and a
// thread may be put aside in between; if each such difference counted, a flood of
// readings would make time run faster, and every window shorter.
const tolerance = 50 * time.Millisecond

// Clock counts nanoseconds. It follows the monotonic clock, and where the wall clock
// made a larger step it follows that: a monotonic clock may have stood still while a
// serverless instance was frozen. A wall clock that is set back changes nothing; one
// that is set forward looks like time gone by.
//
// The zero Clock is ready for use and is safe for concurrent use: readings that are
// taken one after the other never go back.
type Clock struct {
	state atomic.Pointer[state] // nil before the first reading
	mu    sync.Mutex            // to change it
}

// state is what the wall clock's steps have come to. It changes with a step only.
type state struct {
	base           time.Time     // the first reading; carries the monotonic clock
	since          time.Duration // monotonic time of the last change
	ahead, skipped time.Duration // by how much the wall clock was ahead then, and the sum of what counted
}

// Now returns the nanoseconds since the first reading, plus 1.
func (c *Clock) Now() int64 { return c.At(time.Now()) }

// At is Now for a reading of time.Now that the caller took. Readings may arrive in
// another order than they were taken in; an older one moves nothing.
func (c *Clock) At(t time.Time) int64 {
	s := c.state.Load()
	if s == nil {
		s = c.begin(t)
	}
	mono, ahead := s.read(t)
	if (ahead - s.ahead).Abs() > tolerance {
		s = c.step(t)
		mono, _ = s.read(t)
	}
	// Not before the last step: a reading from before it would see half of it.
	return int64(max(mono, s.since)+s.skipped) + 1
}

// read returns the monotonic time since the first reading, and by how much more the
// wall clock went on.
func (s *state) read(t time.Time) (mono, ahead time.Duration) {
	mono = t.Sub(s.base)
	return mono, time.Duration(t.UnixNano()-s.base.UnixNano()) - mono
}

func (c *Clock) begin(t time.Time) *state {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.state.Load(); s != nil {
		return s
	}
	s := &state{base: t}
	c.state.Store(s)
	return s
}

// step takes over a step of the wall clock that t shows, unless t is older than the
// last one.
func (c *Clock) step(t time.Time) *state {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state.Load()
	mono, ahead := s.read(t)
	if mono < s.since || mono == s.since && ahead < s.ahead || (ahead-s.ahead).Abs() <= tolerance {
		return s
	}
	next := &state{base: s.base, since: mono, ahead: ahead, skipped: s.skipped}
	if ahead > s.ahead {
		next.skipped += ahead - s.ahead
	}
	c.state.Store(next)
	return next
}
