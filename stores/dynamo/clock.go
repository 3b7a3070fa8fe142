package dynamo

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxSkew is how far the local clock may be off the server's before it is
	// corrected. The Date header has steps of one second.
	maxSkew = 2 * time.Second

	// logPause keeps a clock that goes to and fro from filling the log.
	logPause = time.Minute
)

// clock is the wall clock in milliseconds, corrected by the answers' Date headers.
//
// A correction needs two answers in a row that agree: one odd header may move nothing,
// because a now that jumps would start windows anew.
type clock struct {
	read   func() time.Time
	logger *slog.Logger
	offset atomic.Int64 // ms to be added to the local clock

	mu        sync.Mutex
	suspected bool
	suspect   int64 // offset that the last answer asked for
	logged    time.Time
}

// now returns the corrected time of a local reading in milliseconds since 1970.
func (c *clock) now(local time.Time) int64 { return local.UnixMilli() + c.offset.Load() }

// micros is now in microseconds.
func (c *clock) micros(local time.Time) int64 { return local.UnixMicro() + 1000*c.offset.Load() }

// observe takes the Date of an answer to a request that was begun at the local time
// began. It reports whether the corrected clock agrees with it.
func (c *clock) observe(ctx context.Context, date, began time.Time) bool {
	// The server's clock stood at date or up to a second later, at a moment between
	// began and now. The second reading is taken only where the first one does
	// not explain the header: a process that was frozen meanwhile has no wrong clock.
	low := date.Sub(began)
	high := low + time.Second
	if !c.fits(low, high) {
		low = date.Sub(c.read())
	}
	if c.fits(low, high) {
		c.trust()
		return true
	}
	c.doubt(ctx, low, high)
	return false
}

// fits reports whether the offset in force is within maxSkew of low to high.
func (c *clock) fits(low, high time.Duration) bool {
	offset := time.Duration(c.offset.Load()) * time.Millisecond
	return low-maxSkew <= offset && offset <= high+maxSkew
}

// trust forgets a suspicion.
func (c *clock) trust() {
	c.mu.Lock()
	c.suspected = false
	c.mu.Unlock()
}

// doubt corrects the clock if the answer before this one asked for the same.
func (c *clock) doubt(ctx context.Context, low, high time.Duration) {
	wanted := (low + high) / 2
	if wanted.Abs() <= maxSkew {
		wanted = 0
	}
	ms := wanted.Milliseconds()
	now := time.Now() // for a duration, so by the monotonic clock

	c.mu.Lock()
	agreed := c.suspected && (time.Duration(ms-c.suspect)*time.Millisecond).Abs() <= maxSkew
	c.suspected, c.suspect = !agreed, ms
	if agreed {
		c.offset.Store(ms)
	}
	tell := agreed && (c.logged.IsZero() || now.Sub(c.logged) >= logPause)
	if tell {
		c.logged = now
	}
	c.mu.Unlock()

	switch {
	case !tell:
	case ms == 0:
		c.logger.InfoContext(ctx, "dynamo: the local clock agrees with the server's again")
	default:
		c.logger.WarnContext(ctx, "dynamo: the local clock is off the server's and is corrected", slog.Duration("by", wanted))
	}
}
