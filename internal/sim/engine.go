package sim

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// engine is the shared store: fixed windows that open at the first hit. Like DynamoDB
// it takes the time from its caller, so that clocks which differ show.
type engine struct {
	scenario Scenario
	start    time.Time

	mu    sync.Mutex
	rng   *rand.Rand
	keys  map[string]counter
	calls int
}

type counter struct {
	used int
	end  time.Time
}

func newEngine(s Scenario, seed uint64) *engine {
	return &engine{scenario: s, start: time.Now(), rng: rand.New(rand.NewPCG(seed, 1)), keys: make(map[string]counter)}
}

// take pays owed, then takes the hit, at the caller's time.
func (e *engine) take(now time.Time, hit stores.Hit, owed int, until time.Duration) stores.Decision {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.keys[hit.Key]
	switch live := now.Before(c.end); {
	case live:
	case owed > 0 && until > 0:
		c = counter{end: now.Add(until)}
	default:
		c, owed = counter{end: now.Add(hit.Limit.Window)}, 0
	}
	cost := max(1, hit.Cost)
	c.used = max(c.used, min(hit.Limit.Quota, c.used+owed))
	d := stores.Decision{Allowed: c.used+cost <= hit.Limit.Quota}
	if d.Allowed {
		c.used += cost
	}
	e.keys[hit.Key] = c
	d.Remaining = max(0, hit.Limit.Quota-c.used)
	d.ResetAfter = min(hit.Limit.Window, (c.end.Sub(now) + time.Millisecond - 1).Truncate(time.Millisecond))
	if !d.Allowed {
		d.RetryAfter = d.ResetAfter
	}
	return d
}

// draw tells what becomes of the next call.
func (e *engine) draw() fate {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	return e.scenario.fate(time.Since(e.start), e.rng)
}

// line is one instance's way to the engine: a stores.Store and a stores.Debtor.
type line struct {
	*engine
	skew time.Duration // of the instance's clock
}

func (l *line) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	return l.TakeOwing(ctx, hit, 0, 0)
}

func (l *line) TakeOwing(ctx context.Context, hit stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	f := l.draw()
	if f.refused {
		return stores.Decision{}, &fault.Error{Kind: stores.ErrUnavailable, Text: "connection refused", Definite: true}
	}
	if err := pause(ctx, f.out); err != nil {
		return stores.Decision{}, err
	}
	if f.lostBefore {
		return stores.Decision{}, cut()
	}
	d := l.take(time.Now().Add(l.skew), hit, owed, until)
	if err := pause(ctx, f.back); err != nil {
		return stores.Decision{}, err
	}
	if f.lostAfter {
		return stores.Decision{}, cut()
	}
	return d, nil
}

func cut() error { return &fault.Error{Kind: stores.ErrUnavailable, Text: "connection cut"} }

// pause ends early with an error when the caller gives up: then nobody knows whether
// the hit was counted.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return &fault.Error{Kind: stores.ErrUnavailable, Text: "no answer in time", Cause: ctx.Err()}
	}
}
