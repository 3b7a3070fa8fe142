package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sallyport/sallyport/internal/clock"
	"github.com/sallyport/sallyport/internal/table"
	"github.com/sallyport/sallyport/stores"
)

const (
	defaultMaxKeys = 50_000
	maxMaxKeys     = 1 << 30
)

// Config configures New. Its zero value is good for most.
type Config struct {
	// MaxKeys is the exact cap on keys per limit shape (algorithm, window, block), 1
	// to 2^30; 0 means 50,000, which takes about 2.5 MB when full. Limits of more
	// than 16 shapes share the last table.
	MaxKeys int
}

// Store counts in memory. Make one with New. It is safe for concurrent use and
// implements all optional interfaces of package stores. Its decisions have the
// Source Local.
type Store struct {
	clock  clock.Clock
	tables *table.Set[shape, record]
}

// New returns an empty store. The error wraps stores.ErrInvalid.
func New(cfg Config) (*Store, error) {
	if cfg.MaxKeys < 0 || cfg.MaxKeys > maxMaxKeys {
		return nil, fmt.Errorf("%w memory store: MaxKeys %d: want 0 (for %d) to 2^30", stores.ErrInvalid, cfg.MaxKeys, defaultMaxKeys)
	}
	if cfg.MaxKeys == 0 {
		cfg.MaxKeys = defaultMaxKeys
	}
	return &Store{tables: table.NewSet[shape, record](cfg.MaxKeys, nil)}, nil
}

var errNil = fmt.Errorf("%w: a nil or zero *memory.Store: make one with memory.New", stores.ErrMisconfigured)

// admit is what every method does before it looks at a key.
func (s *Store) admit(ctx context.Context, hit *stores.Hit) error {
	if s == nil || s.tables == nil {
		return errNil
	}
	if err := hit.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Supports(hit.Limit)
}

// Supports returns nil for stores.FixedWindow without a block, and for other limits
// an error that wraps errors.ErrUnsupported.
func (s *Store) Supports(limit stores.Limit) error {
	if limit.Algorithm != stores.Fixed {
		return fmt.Errorf("memory store: %w: algorithm %s: use a fixed window", errors.ErrUnsupported, limit.Algorithm)
	}
	if limit.Block != 0 {
		return fmt.Errorf("memory store: %w: a block: use a fixed window without one, as long as the block", errors.ErrUnsupported)
	}
	return nil
}

// Take implements stores.Store. It does not allocate.
func (s *Store) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	if err := s.admit(ctx, &hit); err != nil {
		return stores.Decision{}, err
	}
	cost := int64(max(1, hit.Cost))
	if cost > int64(hit.Limit.Quota) {
		return stores.Decision{Source: stores.Local}, nil
	}
	return s.of(hit.Limit).take(hit.Key, hit.Limit, cost, 0, 0, s.clock.Now()), nil
}

// TakeOwing implements stores.Debtor. A negative owed, or an until outside of 0 to
// the limit's Window, is an error that wraps stores.ErrInvalid.
func (s *Store) TakeOwing(ctx context.Context, hit stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	if err := s.admit(ctx, &hit); err != nil {
		return stores.Decision{}, err
	}
	if owed < 0 || until < 0 || until > hit.Limit.Window {
		return stores.Decision{}, fmt.Errorf("%w debt: %d until %s", stores.ErrInvalid, owed, until)
	}
	if until == 0 {
		owed = 0 // its window is over
	}
	cost := int64(max(1, hit.Cost))
	return s.of(hit.Limit).take(hit.Key, hit.Limit, cost, int64(owed), int64(until), s.clock.Now()), nil
}

// TakeAll implements stores.Batcher: one Take after the other, with no lock held
// between them.
func (s *Store) TakeAll(ctx context.Context, hits []stores.Hit, out []stores.Decision) (int, error) {
	if len(out) < len(hits) {
		return 0, fmt.Errorf("%w batch: room for %d decisions on %d hits", stores.ErrInvalid, len(out), len(hits))
	}
	for i := range hits {
		d, err := s.Take(ctx, hits[i])
		if err != nil {
			return i, err
		}
		if out[i] = d; !d.Allowed {
			return i + 1, nil
		}
	}
	return len(hits), nil
}

// Peek implements stores.Peeker. The key does not count as touched.
func (s *Store) Peek(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	if err := s.admit(ctx, &hit); err != nil {
		return stores.Decision{}, err
	}
	return s.of(hit.Limit).peek(hit.Key, hit.Limit, int64(max(1, hit.Cost)), s.clock.Now()), nil
}

// Reset implements stores.Resetter.
func (s *Store) Reset(ctx context.Context, hit stores.Hit) error {
	hit.Cost = 0
	if err := s.admit(ctx, &hit); err != nil {
		return err
	}
	s.of(hit.Limit).reset(hit.Key)
	return nil
}

// Refund implements stores.Refunder.
func (s *Store) Refund(ctx context.Context, hit stores.Hit) error {
	if err := s.admit(ctx, &hit); err != nil {
		return err
	}
	s.of(hit.Limit).refund(hit.Key, hit.Limit, int64(max(1, hit.Cost)), s.clock.Now())
	return nil
}

// Len returns the number of keys held, over all limit shapes. Expired keys count
// until they are met; MaxKeys times the number of shapes is never exceeded.
func (s *Store) Len() int { return s.Stats().Keys }

// Stats are the sizes and counters of a Store, over all limit shapes. They are cheap
// to ask for.
type Stats struct {
	Keys        int    // as Len
	Held        int    // of them, keys whose quota is used up or that are blocked
	Evicted     uint64 // keys removed to make room, since the start
	EvictedLive uint64 // of them, keys whose window was not over: what an attacker has made the store forget
	EvictedHeld uint64 // of the live ones, keys whose quota was used up
}

// Stats returns the sizes and counters.
func (s *Store) Stats() Stats {
	if s == nil || s.tables == nil {
		return Stats{}
	}
	keys, held, t := s.tables.Sum()
	return Stats{Keys: keys, Held: held, Evicted: t.Evicted, EvictedLive: t.EvictedLive, EvictedHeld: t.EvictedHeld}
}

func (s *Store) of(limit stores.Limit) counters { return counters{s.tables.Of(shapeOf(limit))} }
