package failover

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sallyport/sallyport/internal/clock"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// Store is a shared store with a fallback. Make one with New, one for a process. It
// is safe for concurrent use and implements all optional interfaces of package
// stores; a method that the shared store lacks returns an error that wraps
// errors.ErrUnsupported.
type Store struct {
	cfg      Config
	shared   stores.Store
	take     ask
	peek     ask // nil if the shared store has no Peek
	local    *memory.Store
	clock    clock.Clock
	breaker  breaker
	refusals *refusals
	hot      *hotKeys
	inFlight chan struct{}
	answered atomic.Int64 // process time of the shared store's last answer; 0: none yet, -1: the last call failed

	counts struct {
		shared, local, remembered, none, probes atomic.Uint64
	}
}

// ask is one question to the shared store. certain tells whether a refusal may be
// remembered.
type ask func(ctx context.Context, hit stores.Hit) (d stores.Decision, certain bool, err error)

// certainTaker is a store that tells of its refusals whether their end is sure.
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
// which, and Decision.Fault why it was not the shared store.
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
	return s.takeOne(&c, &hit)
}

// TakeAll implements stores.Batcher: all hits share one deadline. The remembered
// refusals of all of them are looked up before any is charged: if there is one, it is
// out[n-1], and the decisions before it say Allowed from the Source None, since
// nobody counted those hits.
func (s *Store) TakeAll(ctx context.Context, hits []stores.Hit, out []stores.Decision) (int, error) {
	return s.TakeEach(ctx, hits, nil, out)
}

// TakeEach is TakeAll for a chain in which some refusals end nothing: where open[i]
// is true a refusal of hits[i] does not stop it, and no remembered refusal answers
// hits[i]. A nil open is all false. Package handler uses it for policies that are
// counted but not enforced.
func (s *Store) TakeEach(ctx context.Context, hits []stores.Hit, open []bool, out []stores.Decision) (int, error) {
	if len(out) < len(hits) || open != nil && len(open) < len(hits) {
		return 0, fmt.Errorf("%w batch: room for %d decisions on %d hits", stores.ErrInvalid, len(out), len(hits))
	}
	if len(hits) == 0 {
		return 0, nil
	}
	for i := range hits {
		if err := s.admit(ctx, &hits[i]); err != nil {
			// Those before it are not charged for a chain that can't be decided.
			return 0, err
		}
	}
	now := s.clock.Now()
	for i := range hits {
		if open != nil && open[i] {
			continue
		}
		if d, ok := s.recall(&hits[i], now); ok {
			for before := range out[:i] {
				out[before] = stores.Decision{Allowed: true, Source: stores.None}
			}
			out[i] = d
			return i + 1, nil
		}
	}
	c := s.newCall(ctx, now)
	defer c.end()
	for i := range hits {
		d, err := s.takeOne(&c, &hits[i])
		if err != nil {
			return i, err
		}
		out[i] = d
		if !d.Allowed && (open == nil || !open[i]) {
			return i + 1, nil
		}
	}
	return len(hits), nil
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
func (s *Store) takeOne(c *call, hit *stores.Hit) (stores.Decision, error) {
	if hit.Cost > hit.Limit.Quota {
		// Nobody has to be asked.
		return stores.Decision{}, nil
	}
	mark := s.refusals.mark(hit)
	d, certain, err := s.ask(c, hit, s.take)
	if err == nil {
		d.Source, d.Fault = stores.Shared, nil
		s.counts.shared.Add(1)
		if !d.Allowed && certain {
			s.refusals.remember(hit, &d, mark, s.clock.Now())
		}
		return d, nil
	}
	if final(err) {
		return stores.Decision{}, err
	}
	return s.takeWithout(hit, err, (*memory.Store).Take)
}

// takeWithout decides about a hit for which the shared store failed with cause.
func (s *Store) takeWithout(hit *stores.Hit, cause error, take func(*memory.Store, context.Context, stores.Hit) (stores.Decision, error)) (stores.Decision, error) {
	s.breaker.countLocal()
	switch hit.Outage {
	case stores.OutageAllow:
		s.counts.none.Add(1)
		return stores.Decision{Allowed: true, Source: stores.None, Fault: cause}, nil
	case stores.OutageRefuse:
		s.counts.none.Add(1)
		return stores.Decision{Source: stores.None, RetryAfter: s.untilProbe(), Fault: cause}, nil
	}
	mine := *hit
	mine.Limit.Quota = max(1, hit.Limit.Quota/s.cfg.Instances)
	// The caller may have gone meanwhile; what it asked for is counted all the same.
	d, err := take(s.local, context.Background(), mine)
	if err != nil {
		return stores.Decision{}, fmt.Errorf("fallback: %w", err)
	}
	if !d.Allowed && d.RetryAfter == 0 {
		// More than this instance's share, though not more than the quota.
		d.RetryAfter = s.untilProbe()
	}
	d.Source, d.Fault = stores.Local, cause
	s.counts.local.Add(1)
	return d, nil
}

// untilProbe is when it is worth trying again, as far as one can know in an outage.
func (s *Store) untilProbe() time.Duration {
	return max(time.Second, s.breaker.left(s.clock.Now()))
}
