package failover

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sallyport/sallyport/internal/clock"
	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// Store is a shared store with a fallback. Make one with New, one for a process. It
// is safe for concurrent use and implements all optional interfaces of package
// stores; a method that the shared store lacks returns an error that wraps
// errors.ErrUnsupported.
type Store struct {
	cfg      Config
	shared   stores.Store
	take     ask
	peek     ask           // nil if the shared store has no Peek
	debtor   stores.Debtor // nil if the shared store is none
	chain    chainer       // how to ask about several hits at once; nil: one after the other
	plain    bool          // the chain takes no debts, and ends at every refusal
	fallback *fallback
	clock    clock.Clock
	breaker  breaker
	refusals *refusals
	hot      *hotKeys
	inFlight chan struct{}
	mistakes mistakes
	answered atomic.Int64 // process time of the shared store's last answer; 0: none yet, -1: the last call failed

	counts struct {
		shared, local, remembered, none, probes atomic.Uint64
	}
}

// ask is one question to the shared store. certain tells whether the window's end is
// sure, so that a refusal may be remembered until then.
type ask func(ctx context.Context, hit stores.Hit) (d stores.Decision, certain bool, err error)

// certainTaker is a store that tells of its decisions whether the window's end is
// sure.
type certainTaker interface {
	TakeCertain(ctx context.Context, hit stores.Hit) (d stores.Decision, certain bool, err error)
}

func (s *Store) takeShared(ctx context.Context, hit stores.Hit) (stores.Decision, bool, error) {
	d, err := s.shared.Take(ctx, hit)
	return d, true, err
}

var errNil = fmt.Errorf("%w: a nil or zero *failover.Store: make one with failover.New", stores.ErrMisconfigured)

// admit is what every method does before it looks at a key.
func (s *Store) admit(ctx context.Context, hit *stores.Hit) error {
	if s == nil || s.shared == nil {
		return errNil
	}
	if err := hit.Validate(); err != nil {
		return err
	}
	return ctx.Err()
}

// Take implements stores.Store: a remembered refusal decides, else the shared store,
// else, when that failed, memory or what the hit's Outage says. Decision.Source tells
// which, and Decision.Fault why it was not the shared store. stores.OutageAllow counts
// only where the shared store is down: what clients can bring about (a key that is too
// hot, more calls than may be in flight, a request without time left) is up to memory.
//
// The end of ctx does not cancel a call that was begun: the hit is counted, and its
// outcome is used. When ctx is done beforehand its error is returned and nothing is
// counted. Other errors wrap stores.ErrInvalid or errors.ErrUnsupported.
func (s *Store) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	if err := s.admit(ctx, &hit); err != nil {
		return stores.Decision{}, err
	}
	now := s.clock.Now()
	if d, ok := s.recall(&hit, now); ok {
		return d, nil
	}
	c := s.newCall(ctx, now)
	defer c.end()
	k := s.fallback.of(&hit)
	return s.takeOne(&c, &k, &hit)
}

// recall answers from memory. A cost above the quota is none of its business: the
// limit itself refuses that, for ever.
func (s *Store) recall(hit *stores.Hit, now int64) (stores.Decision, bool) {
	if hit.Cost > hit.Limit.Quota {
		return stores.Decision{}, false
	}
	d, ok := s.refusals.recall(hit, now)
	if ok {
		s.counts.remembered.Add(1)
	}
	return d, ok
}

// takeOne decides about one hit by the shared store or, if that fails, without it.
func (s *Store) takeOne(c *call, k *keyed, hit *stores.Hit) (stores.Decision, error) {
	if hit.Cost > hit.Limit.Quota {
		// Nobody has to be asked.
		k.keep(s.clock.Now())
		return stores.Decision{}, nil
	}
	for {
		d, begun, err := s.send(c, k, hit)
		if err != nil {
			return s.without(c, k, hit, err, true), nil
		}
		began := s.refusals.mark(hit)
		told, certain, asked, err := s.ask(c, hit, s.question(d))
		now := s.clock.Now()
		if err == nil {
			s.heard(k, hit, d, &told, certain, began, begun, now)
			return told, nil
		}
		if d.owed > 0 && errors.Is(err, errors.ErrUnsupported) {
			// The store takes no debts for this limit, so it will not know of all that was let
			// through here. Then this instance sees to the quota.
			k.failed(d, false, now)
			continue
		}
		definite := !asked || fault.Definite(err)
		k.failed(d, definite, now)
		if final(err) {
			return stores.Decision{}, err
		}
		return s.without(c, k, hit, err, definite), nil
	}
}

// bound makes a shared store's answer one that callers can rely on, whatever the
// store: the numbers lie within the limit's bounds.
func bound(limit stores.Limit, d *stores.Decision) {
	most := limit.Window + limit.Block
	if limit.Algorithm == stores.Sliding {
		most += limit.Window
	}
	d.Source, d.Fault = stores.Shared, nil
	d.Remaining = max(0, min(d.Remaining, limit.Quota))
	d.RetryAfter = max(0, min(d.RetryAfter, most))
	d.ResetAfter = max(0, min(d.ResetAfter, most))
	d.Delay = max(0, min(d.Delay, most))
	if d.Allowed {
		d.RetryAfter = 0
	}
}

// send makes ready to ask the shared store about a hit, or says why that can't be. A
// hit whose key has a payment on its way waits for it, within the call's time.
func (s *Store) send(c *call, k *keyed, hit *stores.Hit) (d debt, begun int64, err error) {
	for {
		begun = s.clock.Now()
		if err := s.closed(c, hit, begun); err != nil {
			return debt{}, begun, err
		}
		due, ok := s.due(c, begun)
		if !ok {
			return debt{}, begun, errNoTime
		}
		d, wait, err := k.send(begun, due)
		if wait == nil {
			return d, begun, err
		}
		c.whole = false
		select {
		case <-wait:
		case <-c.ctx.Done():
			return debt{}, begun, errPaying
		}
	}
}

// question returns how to ask about a hit that carries a debt.
func (s *Store) question(d debt) ask {
	if d.owed == 0 {
		return s.take
	}
	return func(ctx context.Context, hit stores.Hit) (stores.Decision, bool, error) {
		owed := int(min(d.owed, int64(hit.Limit.Quota)))
		told, err := s.debtor.TakeOwing(ctx, hit, owed, min(d.until, hit.Limit.Window))
		return told, told.Allowed, err
	}
}

// without decides about a hit without the shared store, which failed with cause.
// definite tells that it certainly did not count the hit.
//
// Memory decides in place of OutageAllow unless the store is down: a key that is too
// hot, more calls than may be in flight, a request that spent its time are what
// a client can bring about, who must not be let through for it.
func (s *Store) without(c *call, k *keyed, hit *stores.Hit, cause error, definite bool) stores.Decision {
	s.breaker.countLocal()
	k.keep(s.clock.Now())
	switch {
	case hit.Outage == stores.OutageAllow && c.outage:
		s.counts.none.Add(1)
		return stores.Decision{Allowed: true, Source: stores.None, Fault: cause}
	case hit.Outage == stores.OutageRefuse:
		s.counts.none.Add(1)
		return stores.Decision{Source: stores.None, RetryAfter: s.untilProbe(), Fault: cause}
	}
	s.counts.local.Add(1)
	d := k.take(s.clock.Now(), definite && s.debtor != nil)
	d.Source, d.Fault = stores.Local, cause
	return d
}

// untilProbe is when it is worth trying again, as far as one can know in an outage.
func (s *Store) untilProbe() time.Duration {
	return max(time.Second, s.breaker.left(s.clock.Now()))
}
