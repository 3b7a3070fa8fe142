package memory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sallyport/sallyport/internal/clock"
	"github.com/sallyport/sallyport/stores"
)

const (
	defaultMaxKeys = 50_000
	maxMaxKeys     = 1 << 30
)

// Config configures New. Its zero value is good for most.
type Config struct {
	// MaxKeys is the exact cap on keys per limit shape (algorithm, window, block), 1
	// to 2^30; 0 means 50,000, which takes about 2.5 MB when full for fixed windows
	// and 4 MB for other limits (7 MB at most for a log). The time stamps of a log count too: up to seven are
	// one key. There are 16 tables at most, and one of them at least for each of fixed
	// windows, logs, and all other limits; limits of more shapes share the last one.
	MaxKeys int
}

// Store counts in memory. Make one with New. It is safe for concurrent use and
// implements all optional interfaces of package stores. Its decisions have the
// Source Local.
type Store struct {
	clock  clock.Clock
	tables *tables
}

// New returns an empty store. The error wraps stores.ErrInvalid.
func New(cfg Config) (*Store, error) {
	if cfg.MaxKeys < 0 || cfg.MaxKeys > maxMaxKeys {
		return nil, fmt.Errorf("%w memory store: MaxKeys %d: want 0 (for %d) to 2^30", stores.ErrInvalid, cfg.MaxKeys, defaultMaxKeys)
	}
	if cfg.MaxKeys == 0 {
		cfg.MaxKeys = defaultMaxKeys
	}
	return &Store{tables: newTables(cfg.MaxKeys)}, nil
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
	if hit.Limit.Algorithm == stores.Log {
		return s.Supports(hit.Limit)
	}
	return nil
}

// Supports returns nil for every limit but a log whose time stamps would not fit into
// MaxKeys slots even if the store held nothing else. The error wraps
// errors.ErrUnsupported and names what to use instead.
func (s *Store) Supports(limit stores.Limit) error {
	if s == nil || s.tables == nil {
		return errNil
	}
	switch limit.Algorithm {
	case stores.Fixed, stores.Sliding, stores.Token, stores.Leaky:
		return nil
	case stores.Log:
		return fits(limit.Quota, s.tables.maxKeys)
	}
	return fmt.Errorf("memory store: %w: %s", errors.ErrUnsupported, limit.Algorithm)
}

// Take implements stores.Store. It does not allocate, but for a store that still grows.
func (s *Store) Take(ctx context.Context, hit stores.Hit) (d stores.Decision, err error) {
	if err := s.admit(ctx, &hit); err != nil {
		return d, err
	}
	cost, quota := int64(max(1, hit.Cost)), int64(hit.Limit.Quota)
	if cost > quota {
		d.Source = stores.Local
		return d, nil
	}
	if plain(&hit.Limit) {
		s.tables.counters.Of(shapeOf(&hit.Limit)).count(&d, hit.Key, quota, int64(hit.Limit.Window), cost, 0, 0, s.clock.Now())
		return d, nil
	}
	return s.tables.of(&hit.Limit).take(hit.Key, hit.Limit, cost, 0, 0, s.clock.Now()), nil
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
	return s.tables.of(&hit.Limit).take(hit.Key, hit.Limit, cost, int64(owed), until, s.clock.Now()), nil
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
	return s.tables.of(&hit.Limit).peek(hit.Key, hit.Limit, int64(max(1, hit.Cost)), s.clock.Now()), nil
}

// Reset implements stores.Resetter.
func (s *Store) Reset(ctx context.Context, hit stores.Hit) error {
	hit.Cost = 0
	if err := s.admit(ctx, &hit); err != nil {
		return err
	}
	s.tables.of(&hit.Limit).reset(hit.Key)
	return nil
}

// Refund implements stores.Refunder.
func (s *Store) Refund(ctx context.Context, hit stores.Hit) error {
	if err := s.admit(ctx, &hit); err != nil {
		return err
	}
	s.tables.of(&hit.Limit).refund(hit.Key, hit.Limit, int64(max(1, hit.Cost)), s.clock.Now())
	return nil
}

// Len returns the number of keys held, over all limit shapes. Expired keys count
// until they are met; MaxKeys times the number of shapes is never exceeded, the room for
// the time stamps of logs included, which is not in Len.
func (s *Store) Len() int { return s.Stats().Keys }

// Stats are the sizes and counters of a Store, over all limit shapes. They are cheap
// to ask for.
type Stats struct {
	Keys        int    // as Len
	Held        int    // of them, keys that used up their quota or were blocked, and had half of it used or more at their last hit
	Evicted     uint64 // keys removed to make room, since the start
	EvictedLive uint64 // of them, keys whose window was not over: what an attacker has made the store forget
	EvictedHeld uint64 // of the live ones, keys whose quota was used up
}

// Stats returns the sizes and counters.
func (s *Store) Stats() Stats {
	if s == nil || s.tables == nil {
		return Stats{}
	}
	return s.tables.stats()
}
