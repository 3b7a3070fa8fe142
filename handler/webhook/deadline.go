package webhook

import (
	"context"
	"time"
)

const (
	// handleTime is how long a handler has: as long as senders wait at the very most.
	handleTime = 30 * time.Second

	// reserve is kept back from a request's own deadline, behind which Lambda ends the
	// process, to write the done mark in.
	reserve = time.Second

	// finishTime is what the marks have left at least when the handler has returned late.
	finishTime = 2 * time.Second
)

// course is the time of one delivery.
type course struct {
	began time.Time
	ctx   context.Context // of the request, without its end
	limit time.Time       // its deadline; zero: none
}

func newCourse(ctx context.Context, now time.Time) course {
	c := course{began: now, ctx: context.WithoutCancel(ctx)}
	c.limit, _ = ctx.Deadline()
	return c
}

// handling is the context for all that comes before the done mark.
func (c *course) handling() (context.Context, context.CancelFunc) {
	end := c.began.Add(handleTime)
	if !c.limit.IsZero() {
		own := c.limit.Add(-min(reserve, c.limit.Sub(c.began)/4))
		if own.Before(end) {
			end = own
		}
	}
	return context.WithDeadline(c.ctx, end)
}

// finishing is the context for what comes after it.
func (c *course) finishing() (context.Context, context.CancelFunc) {
	end := c.began.Add(busyTime)
	if least := time.Now().Add(finishTime); end.Before(least) {
		end = least
	}
	if !c.limit.IsZero() && c.limit.Before(end) {
		end = c.limit
	}
	return context.WithDeadline(c.ctx, end)
}

// ours tells whether the busy mark can't have ended yet. Behind its end it may be
// another's, which must not be taken back. Of the two clocks the one counts that went
// further: a frozen instance's monotonic clock may have stood still.
func (c *course) ours() bool {
	now := time.Now()
	return max(now.Sub(c.began), now.Round(0).Sub(c.began.Round(0))) < busyTime-finishTime
}
