package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// call is the time that the shared store has for one request, which may ask about
// several hits.
type call struct {
	parent context.Context
	begun  int64 // process time
	ctx    context.Context
	cancel context.CancelFunc
	whole  bool // the store has the configured time, not one cut short by the caller's deadline or by waiting in line
	tried  bool // ctx was asked for
}

func (s *Store) newCall(ctx context.Context, now int64) call {
	return call{parent: ctx, begun: now}
}

func (c *call) end() {
	if c.cancel != nil {
		c.cancel()
	}
}

var (
	errNoTime = &fault.Error{Kind: stores.ErrUnavailable, Definite: true,
		Text: "shared store not asked: the request's deadline leaves no time for it"}
	errBusy = &fault.Error{Kind: stores.ErrUnavailable, Definite: true,
		Text: "shared store not asked: too many calls under way"}
	errPaying = &fault.Error{Kind: stores.ErrUnavailable, Definite: true,
		Text: "shared store not asked: it takes its time to be told what this key was let through without it"}
	errDoubtful = &fault.Error{Kind: stores.ErrUnavailable, Definite: true,
		Text: "shared store not asked: it may not know of all that this key was let through without it"}
	errHot = &fault.Error{Kind: stores.ErrHotKey, Definite: true, KeyOnly: true,
		Text: "shared store not asked: it throttles this key"}
)

// start gives the call its deadline, at its first use. It hangs on nothing that the
// client can end: a client that hangs up would otherwise cut a connection each time.
func (s *Store) start(c *call) {
	if c.tried {
		return
	}
	c.tried = true
	budget := s.cfg.Timeout
	if s.probablyDials(c.begun) {
		budget = max(budget, min(freshFactor*budget, freshLimit))
	}
	c.whole = true
	if deadline, ok := c.parent.Deadline(); ok {
		if left := time.Until(deadline) - s.cfg.Reserve; left < budget {
			budget, c.whole = left, left >= s.cfg.Timeout
		}
	}
	if budget < min(leastBudget, s.cfg.Timeout) {
		return
	}
	c.ctx, c.cancel = context.WithTimeout(context.WithoutCancel(c.parent), budget)
}

// probablyDials tells whether the shared store's connections are likely closed: no
// answer yet, or none for as long as an idle connection is kept. After a failure it
// says no, or an outage would cost every request the longer time.
func (s *Store) probablyDials(now int64) bool {
	last := s.answered.Load()
	return last == 0 || last > 0 && now-last >= int64(idleAfter)
}

// closed returns why the shared store can't be asked about a hit for the moment, or
// nil.
func (s *Store) closed(hit *stores.Hit, now int64) error {
	if s.hot.is(hit.Key, now) {
		return errHot
	}
	return s.breaker.blocked(now)
}

// ask puts one question to the shared store, under breaker, deadline and bound. An
// error is either final or a reason to decide without it; asked tells whether the
// question reached the store's code.
func (s *Store) ask(c *call, hit *stores.Hit, question ask) (d stores.Decision, certain, asked bool, err error) {
	if s.start(c); c.ctx == nil {
		return d, false, false, errNoTime
	}
	select {
	case s.inFlight <- struct{}{}:
	default:
		c.whole = false
		select {
		case s.inFlight <- struct{}{}:
		case <-c.ctx.Done():
			return d, false, false, errBusy
		}
	}
	defer func() { <-s.inFlight }()
	if c.ctx.Err() != nil {
		return d, false, false, errNoTime
	}

	p, change, err := s.breaker.admit(s.clock.Now())
	s.announce(change)
	if err != nil {
		return d, false, false, err
	}
	if p.probe {
		s.counts.probes.Add(1)
	}
	d, certain, err = guarded(c.ctx, hit, question)
	now := s.clock.Now()
	o := s.judge(c, err)
	switch o {
	case good:
		s.answered.Store(now)
	case failed:
		s.answered.Store(-1)
	}
	if keyOnly(err) {
		s.hot.add(hit.Key, now)
	}
	s.announce(s.breaker.settle(p, o, err, now))
	return d, certain, true, err
}

// guarded turns a panic of the shared store into a failure: it would end the process
// on Lambda, and the memory of all offenders with it.
func guarded(ctx context.Context, hit *stores.Hit, question ask) (d stores.Decision, certain bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			d, certain = stores.Decision{}, false
			err = &fault.Error{Kind: stores.ErrUnavailable, Text: fmt.Sprintf("shared store panicked (%T)", p)}
		}
	}()
	return question(ctx, *hit)
}

// judge says what the outcome of a call tells about the shared store.
func (s *Store) judge(c *call, err error) outcome {
	switch {
	case err == nil:
		return good
	case final(err), keyOnly(err):
		return neutral
	case !c.whole && errors.Is(err, context.DeadlineExceeded):
		// It had too little time; that says nothing about the store.
		return neutral
	}
	return failed
}

// final errors are the caller's and are returned to it; nothing was counted.
func final(err error) bool {
	return errors.Is(err, stores.ErrInvalid) || errors.Is(err, errors.ErrUnsupported)
}

// keyOnly faults lie with one key.
func keyOnly(err error) bool {
	var f *fault.Error
	return errors.Is(err, stores.ErrHotKey) || errors.As(err, &f) && f.KeyOnly
}
