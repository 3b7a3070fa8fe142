package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// Supports implements stores.Supporter: both the shared store and the fallback have
// to serve the limit. A shared store without Supports is taken to serve all.
func (s *Store) Supports(limit stores.Limit) error {
	if s == nil || s.shared == nil {
		return errNil
	}
	if sup, ok := s.shared.(stores.Supporter); ok {
		if err := sup.Supports(limit); err != nil {
			return err
		}
	}
	return s.local.Supports(limit)
}

// Peek implements stores.Peeker. A remembered refusal is heeded. When the shared
// store fails, the fallback is looked at, whatever the hit's Outage.
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
	c := s.newCall(ctx, now)
	defer c.end()
	d, _, err := s.ask(&c, &hit, s.peek)
	if err == nil {
		d.Source, d.Fault = stores.Shared, nil
		s.counts.shared.Add(1)
		return d, nil
	}
	if final(err) {
		return stores.Decision{}, err
	}
	hit.Outage = stores.OutageFallBack
	return s.takeWithout(&hit, err, (*memory.Store).Peek)
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
	s.refusals.drop(&hit)
	// Once more behind the call: an answer from before it may have come meanwhile.
	defer s.refusals.drop(&hit)
	if err := s.local.Reset(context.WithoutCancel(ctx), hit); err != nil {
		return err
	}
	return s.order(ctx, &hit, r.Reset)
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
	switch source {
	case stores.Local:
		hit.Limit.Quota = max(1, hit.Limit.Quota/s.cfg.Instances)
		return s.local.Refund(context.WithoutCancel(ctx), hit)
	case stores.Shared:
		r, ok := s.shared.(stores.Refunder)
		if !ok {
			return lacks("Refund")
		}
		s.refusals.drop(&hit)
		defer s.refusals.drop(&hit)
		return s.order(ctx, &hit, r.Refund)
	}
	return nil
}

// order has the shared store do something that has no decision and no fallback.
func (s *Store) order(ctx context.Context, hit *stores.Hit, do func(context.Context, stores.Hit) error) error {
	c := s.newCall(ctx, s.clock.Now())
	defer c.end()
	_, _, err := s.ask(&c, hit, func(ctx context.Context, hit stores.Hit) (stores.Decision, bool, error) {
		return stores.Decision{}, false, do(ctx, hit)
	})
	return err
}

// TakeOwing implements stores.Debtor for a shared store that is one. When it fails,
// the fallback takes hit and debt.
func (s *Store) TakeOwing(ctx context.Context, hit stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	if err := s.admit(ctx, &hit); err != nil {
		return stores.Decision{}, err
	}
	debtor, ok := s.shared.(stores.Debtor)
	if !ok {
		return stores.Decision{}, lacks("TakeOwing")
	}
	c := s.newCall(ctx, s.clock.Now())
	defer c.end()
	d, _, err := s.ask(&c, &hit, func(ctx context.Context, hit stores.Hit) (stores.Decision, bool, error) {
		d, err := debtor.TakeOwing(ctx, hit, owed, until)
		return d, false, err
	})
	if err == nil {
		d.Source, d.Fault = stores.Shared, nil
		s.counts.shared.Add(1)
		return d, nil
	}
	if final(err) {
		return stores.Decision{}, err
	}
	return s.takeWithout(&hit, err, func(m *memory.Store, ctx context.Context, hit stores.Hit) (stores.Decision, error) {
		return m.TakeOwing(ctx, hit, owed, until)
	})
}

func lacks(method string) error {
	return fmt.Errorf("failover: %w: the shared store has no %s", errors.ErrUnsupported, method)
}
