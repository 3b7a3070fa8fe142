package storetest

import (
	"context"
	"time"
)

var contextClauses = []clause{
	{"a cancelled context returns its error and counts nothing", cancelledContext},
	{"a deadline that has passed returns its error and counts nothing", expiredContext},
}

func cancelledContext(c *check) {
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	c.doneContext(ctx)
}

func expiredContext(c *check) {
	ctx, cancel := context.WithDeadline(c.Context(), time.Now().Add(-time.Second))
	defer cancel()
	c.doneContext(ctx)
}

func (c *check) doneContext(ctx context.Context) {
	c.Helper()
	s := c.open()
	h := c.fixed(5, long)
	c.allow(s, h, 4)
	c.allow(s, h, 3)
	for range 10 {
		for _, o := range operations(s) {
			// The very error, because callers tell their own hang-up from a fault by it.
			if err := o.do(ctx, h); err != ctx.Err() && !o.lacking(err) {
				c.Fatalf("%s with a context that is done: error %v: want %v, as it is", o.name, err, ctx.Err())
			}
		}
	}
	c.fill(s, h, 3)

	fresh := c.fixed(1, long)
	for _, o := range operations(s) {
		if err := o.do(ctx, fresh); err == nil {
			c.Fatalf("%s with a context that is done: want %v", o.name, ctx.Err())
		}
	}
	c.allow(s, fresh, 0)

	// A refusal needs an answer too.
	if _, err := s.Take(ctx, fresh); err != ctx.Err() {
		c.Fatalf("Take on a full key with a context that is done: error %v: want %v, as it is", err, ctx.Err())
	}
}
