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
	store  *Store
	parent context.Context
	begun  int64 // process time
	ctx    context.Context
	cancel context.CancelFunc
	whole  bool // the store has the configured time, not one cut short by the caller's deadline or by waiting in line
	tried  bool // ctx was asked for

	// outage: what failed last says that the shared store is down, and not only that it
	// can't be asked about this hit, now.
	outage bool

	changes []*Change // to be announced
}

func (s *Store) newCall(ctx context.Context, now int64) call {
	return call{store: s, parent: ctx, begun: now}
}

// end frees what the call holds and announces what it changed: not before, since
// OnChange may take its time, or panic.
func (c *call) end() {
	if c.cancel != nil {
		c.cancel()
	}
	for _, change := range c.changes {
		c.store.announce(change)
	}
}

func (c *call) changed(change *Change) {
	if change != nil {
		c.changes = append(c.changes, change)
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
	errEnding = &fault.Error{Kind: stores.ErrUnavailable, Definite: true,
		Text: "shared store not asked: the window may end before it could be told what this key was let through in it"}
	errLate = &fault.Error{Kind: stores.ErrUnavailable,
		Text: "shared store answered after its time"}
	errUnreadable = &fault.Error{Kind: stores.ErrUnavailable,
		Text: "shared store failed with an error that panics"}
	errHot = &fault.Error{Kind: stores.ErrHotKey, Definite: true, KeyOnly: true,
		Text: "shared store not asked: it could not serve this key a moment ago"}
)

// start gives the call its deadline, at its first use. It hangs on nothing that the
// client can end: a client that hangs up would otherwise cut a connection each time.
func (s *Store) start(c *call) {
	if c.tried {
		return
	}
	c.tried = true
	budget := s.cfg.Timeout
	if s.probablyDials(c.begun) || s.breaker.now() != Closed {
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

// due is the process time at which the call has to be over, and false if there is no
// time for it.
func (s *Store) due(c *call, now int64) (int64, bool) {
	if s.start(c); c.ctx == nil {
		return 0, false
	}
	deadline, _ := c.ctx.Deadline()
	return now + int64(time.Until(deadline)), true
}

// probablyDials tells whether the shared store's connections are likely closed: no
// answer yet, or none for as long as an idle connection is kept. After a failure it
// says no, or an outage would cost every request the longer time. (A probe gets that
// nevertheless: where a connection takes longer to open than Timeout, no other call
// would ever find the store again.)
func (s *Store) probablyDials(now int64) bool {
	last := s.answered.Load()
	return last == 0 || last > 0 && now-last >= int64(idleAfter)
}

// closed returns why the shared store can't be asked about a hit for the moment, or
// nil.
func (s *Store) closed(c *call, hit *stores.Hit, now int64) error {
	c.outage = false
	if s.hot.is(hit.Key, now) {
		return errHot
	}
	err := s.breaker.blocked(now)
	c.outage = err != nil
	return err
}

// ask puts one question about a hit to the shared store; see put.
func (s *Store) ask(c *call, hit *stores.Hit, question ask) (d stores.Decision, certain, asked bool, err error) {
	asked, err = s.put(c, func(ctx context.Context) (err error) {
		d, certain, err = question(ctx, *hit)
		return err
	})
	if err != nil {
		d, certain = stores.Decision{}, false
	}
	if keyOnly(err) {
		s.hot.add(hit.Key, s.clock.Now())
	}
	return d, certain, asked, err
}

// put puts a question to the shared store, under breaker, deadline and bound. An error
// is either final or a reason to decide without it; asked tells whether the question
// reached the store's code.
func (s *Store) put(c *call, question func(context.Context) error) (asked bool, err error) {
	if s.start(c); c.ctx == nil {
		return false, errNoTime
	}
	select {
	case s.inFlight <- struct{}{}:
	default:
		c.whole = false
		select {
		case s.inFlight <- struct{}{}:
		case <-c.ctx.Done():
			return false, errBusy
		}
	}
	defer func() { <-s.inFlight }()
	if c.ctx.Err() != nil {
		return false, errNoTime
	}

	p, change, err := s.breaker.admit(s.clock.Now())
	c.changed(change)
	if err != nil {
		c.outage = true
		return false, err
	}
	if p.probe {
		s.counts.probes.Add(1)
	}
	err = guarded(c.ctx, question)
	now := s.clock.Now()
	o, cause := c.judge(err)
	switch o {
	case good:
		s.answered.Store(now)
	case failed:
		s.answered.Store(-1)
	}
	c.outage = o == failed
	s.mistakes.note(s.cfg.Logger, err, now)
	c.changed(s.breaker.settle(p, o, cause, now))
	return true, err
}

// guarded turns a panic of the shared store, or of an error that it returns, into a
// failure: it would end the process on Lambda, and the memory of all offenders with it.
func guarded(ctx context.Context, question func(context.Context) error) error {
	err := answerOf(ctx, question)
	if err != nil && !readable(err) {
		err = errUnreadable
	}
	return err
}

func answerOf(ctx context.Context, question func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &fault.Error{Kind: stores.ErrUnavailable, Text: fmt.Sprintf("shared store panicked (%T)", p)}
		}
	}()
	return question(ctx)
}

// readable tells whether err can be looked at: a nil pointer that became an error can't.
func readable(err error) (ok bool) {
	defer func() { ok = recover() == nil }()
	_ = err.Error()
	_, _ = final(err), keyOnly(err)
	return true
}

// judge says what the outcome of a call tells about the shared store, and the
// failure if it is one.
func (c *call) judge(err error) (outcome, error) {
	switch {
	case err == nil && c.whole && c.ctx.Err() != nil:
		// The answer stands, but a store that heeds no deadline is as slow as one that fails.
		return failed, errLate
	case err == nil:
		return good, nil
	case final(err), keyOnly(err), stale(err):
		return neutral, nil
	case !c.whole && errors.Is(err, context.DeadlineExceeded):
		// It had too little time; that says nothing about the store.
		return neutral, nil
	}
	return failed, err
}

// final errors are the caller's and are returned to it; nothing was counted.
func final(err error) bool {
	return errors.Is(err, stores.ErrInvalid) || errors.Is(err, errors.ErrUnsupported)
}

// stale faults lie with a connection that had died while nobody looked.
func stale(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Stale
}

// keyOnly faults lie with one key.
func keyOnly(err error) bool {
	var f *fault.Error
	return errors.Is(err, stores.ErrHotKey) || errors.As(err, &f) && f.KeyOnly
}
