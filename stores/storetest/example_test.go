package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/storetest"
)

// windows is a small store of one's own: fixed windows in a map that only grows.
type windows struct {
	mu    sync.Mutex
	byKey map[string]count
}

type count struct {
	used int
	end  time.Time
}

func (w *windows) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	if err := hit.Validate(); err != nil {
		return stores.Decision{}, err
	}
	if err := ctx.Err(); err != nil {
		return stores.Decision{}, err
	}
	if hit.Limit.Algorithm != stores.Fixed || hit.Limit.Block != 0 {
		return stores.Decision{}, fmt.Errorf("%w: only fixed windows without a block", errors.ErrUnsupported)
	}
	cost := max(hit.Cost, 1)
	if cost > hit.Limit.Quota {
		return stores.Decision{}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	c := w.byKey[hit.Key]
	if !now.Before(c.end) {
		c = count{end: now.Add(hit.Limit.Window)}
	}
	if c.used+cost > hit.Limit.Quota {
		left := c.end.Sub(now)
		return stores.Decision{Remaining: max(0, hit.Limit.Quota-c.used), RetryAfter: left, ResetAfter: left}, nil
	}
	c.used += cost
	w.byKey[hit.Key] = c
	return stores.Decision{Allowed: true, Remaining: hit.Limit.Quota - c.used, ResetAfter: c.end.Sub(now)}, nil
}

// conformance is what a TestConformance in the store's own package looks like. A
// store that talks to a server leaves the bubble out, and its time is real.
func conformance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &windows{byKey: map[string]count{}}
		storetest.Run(t, storetest.Backend{
			Open: func(testing.TB) stores.Store { return shared },
		})
	})
}

// A store of one's own needs Take alone; what it leaves out is skipped.
func Example() {
	_ = conformance // run by go test

	store := &windows{byKey: map[string]count{}}
	hit := stores.Hit{Key: "contact-form:alice", Limit: stores.FixedWindow(2, time.Hour)}
	for range 3 {
		d, err := store.Take(context.Background(), hit)
		fmt.Println(d.Allowed, d.Remaining, err)
	}
	// Output:
	// true 1 <nil>
	// true 0 <nil>
	// false 0 <nil>
}
