package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// Supports implements stores.Supporter by the shared store's: the fallback serves every
// limit. A shared store without Supports is taken to serve all; what it then refuses with
// errors.ErrUnsupported is returned by each Take.
func (s *Store) Supports(limit stores.Limit) error {
	if s == nil || s.shared == nil {
		return errNil
	}
	if sup, ok := s.shared.(stores.Supporter); ok {
		if err := sup.Supports(limit); err != nil {
			return err
		}
	}
	return nil
}

// Peek implements stores.Peeker. A remembered refusal is heeded, and so is what the
// shared store has still to be told of. When the shared store fails, the fallback is
// looked at, whatever the hit's Outage.
func (s *Store) Peek(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	if err := s.admit(ctx, &hit); err != nil {
		return stores.Decision{}, err
	}
	if s.peek == nil {
		return stores.Decision{}, lacks("Peek")
	}
	if hit.Cost > hit.Limit.Quota {
		return stores.Decision{}, nil
	}
	now := s.clock.Now()
	if d, ok := s.recall(&hit, now); ok {
		return d, nil
	}
	k := s.fallback.of(&hit)
	c := s.newCall(ctx, now)
	defer c.end()
	err := s.closed(&c, &hit, now)
	if err == nil && k.doubts(now) {
		err = errDoubtful
	}
	if err == nil {
		var d stores.Decision
		if d, _, _, err = s.ask(&c, &hit, s.peek); err == nil {
			bound(hit.Limit, &d)
			k.charge(&d, s.clock.Now())
			s.counts.shared.Add(1)
			return d, nil
		}
		if final(err) {
			return stores.Decision{}, err
		}
	}
	s.breaker.countLocal()
	s.counts.local.Add(1)
	d := k.peek(s.clock.Now())
	d.Source, d.Fault = stores.Local, err
	return d, nil
}

// Reset implements stores.Resetter: it clears the key in the shared store, in the
// fallback and among the remembered refusals. What this process holds is cleared
// even if the shared store could not be reached; then the error says so. Other
// instances forget their remembered refusals within half of what RetryAfter said, or
// ten seconds.
func (s *Store) Reset(ctx context.Context, hit stores.Hit) error {
	hit.Cost = 0
	if err := s.admit(ctx, &hit); err != nil {
		return err
	}
	r, ok := s.shared.(stores.Resetter)
	if !ok {
		return lacks("Reset")
	}
	k := s.fallback.of(&hit)
	s.refusals.reset(&hit)
	k.reset(s.clock.Now())
	err := s.order(ctx, &hit, r.Reset)
	// Once more: answers from before the shared store forgot the key may have come
	// meanwhile.
	s.refusals.reset(&hit)
	k.unlearn(s.clock.Now())
	return err
}

// Refund implements stores.Refunder. It is for hits that the shared store counted:
// see RefundAt.
func (s *Store) Refund(ctx context.Context, hit stores.Hit) error {
	return s.RefundAt(ctx, hit, stores.Shared)
}

// RefundAt gives a hit's cost back to the one that counted it, which its
// Decision.Source told: giving it to the other would mint what was never taken. For
// Remembered and None it does nothing.
func (s *Store) RefundAt(ctx context.Context, hit stores.Hit, source stores.Source) error {
	if err := s.admit(ctx, &hit); err != nil {
		return err
	}
	k := s.fallback.of(&hit)
	switch source {
	case stores.Local:
		k.refund(true, s.clock.Now())
	case stores.Shared:
		r, ok := s.shared.(stores.Refunder)
		if !ok {
			return lacks("Refund")
		}
		s.refusals.drop(&hit)
		defer s.refusals.drop(&hit)
		if err := s.order(ctx, &hit, r.Refund); err != nil {
			return err
		}
		k.refund(false, s.clock.Now())
	}
	return nil
}

// order has the shared store do something that has no decision and no fallback.
func (s *Store) order(ctx context.Context, hit *stores.Hit, do func(context.Context, stores.Hit) error) error {
	now := s.clock.Now()
	c := s.newCall(ctx, now)
	defer c.end()
	if err := s.closed(&c, hit, now); err != nil {
		return err
	}
	_, _, _, err := s.ask(&c, hit, func(ctx context.Context, hit stores.Hit) (stores.Decision, bool, error) {
		return stores.Decision{}, false, do(ctx, hit)
	})
	return err
}

// TakeOwing implements stores.Debtor for a shared store that is one: what is owed is
// added to what this instance owes for the key, and goes to the shared store with the
// hit or, if that fails, is taken out of the fallback.
func (s *Store) TakeOwing(ctx context.Context, hit stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	if err := s.admit(ctx, &hit); err != nil {
		return stores.Decision{}, err
	}
	if s.debtor == nil {
		return stores.Decision{}, lacks("TakeOwing")
	}
	if owed < 0 || until < 0 || until > hit.Limit.Window {
		return stores.Decision{}, fmt.Errorf("%w debt: %d until %s", stores.ErrInvalid, owed, until)
	}
	now := s.clock.Now()
	k := s.fallback.of(&hit)
	k.bring(owed, until)
	c := s.newCall(ctx, now)
	defer c.end()
	return s.takeOne(&c, &k, &hit)
}

func lacks(method string) error {
	return fmt.Errorf("failover: %w: the shared store has no %s", errors.ErrUnsupported, method)
}
