package memory

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

var (
	_ stores.Store     = (*Store)(nil)
	_ stores.Batcher   = (*Store)(nil)
	_ stores.Peeker    = (*Store)(nil)
	_ stores.Resetter  = (*Store)(nil)
	_ stores.Refunder  = (*Store)(nil)
	_ stores.Debtor    = (*Store)(nil)
	_ stores.Supporter = (*Store)(nil)
)

func open(t testing.TB, maxKeys int) *Store {
	t.Helper()
	s, err := New(Config{MaxKeys: maxKeys})
	require.NoError(t, err)
	return s
}

func take(t testing.TB, s *Store, key string, limit stores.Limit) stores.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), stores.Hit{Key: key, Limit: limit})
	require.NoError(t, err)
	return d
}

func TestNew(t *testing.T) {
	for _, bad := range []int{-1, math.MinInt, 1<<30 + 1} {
		_, err := New(Config{MaxKeys: bad})
		require.ErrorIs(t, err, stores.ErrInvalid)
	}
}

func TestNilAndZeroStore(t *testing.T) {
	hit := stores.Hit{Key: "k", Limit: stores.FixedWindow(1, time.Second)}
	for _, s := range []*Store{nil, {}} {
		_, err := s.Take(t.Context(), hit)
		require.ErrorIs(t, err, stores.ErrMisconfigured)
		require.ErrorIs(t, s.Reset(t.Context(), hit), stores.ErrMisconfigured)
		require.Zero(t, s.Len())
	}
}

// A full table, a blocked client that goes on trying, and a million others.
func TestFloodWhileTheOffenderKnocks(t *testing.T) {
	s := open(t, 1000)
	limit := stores.FixedWindow(5, time.Hour)
	for range 6 {
		take(t, s, "offender", limit)
	}
	for i := range 1_000_000 {
		take(t, s, "flood"+strconv.Itoa(i), limit)
		if i%10_000 == 0 {
			require.False(t, take(t, s, "offender", limit).Allowed)
			require.LessOrEqual(t, s.Len(), 1000)
		}
	}
	require.False(t, take(t, s, "offender", limit).Allowed)
}

// Nor does a flood that uses up quotas as cheaply as can be have a client forgotten
// that goes on trying.
func TestFloodOfHeldKeysWhileTheOffenderKnocks(t *testing.T) {
	s := open(t, 1000)
	once := stores.Cooldown(time.Hour)
	take(t, s, "offender", once)
	for i := range 50_000 {
		take(t, s, "flood"+strconv.Itoa(i), once)
		if i%500 == 0 {
			require.False(t, take(t, s, "offender", once).Allowed, "after %d others", i)
		}
	}
}

// Whoever is silent during the flood is remembered too, whether he was refused, or
// stopped exactly at the quota, or just before it.
func TestFloodWhileTheOffenderKeepsSilent(t *testing.T) {
	limit := stores.FixedWindow(5, time.Hour)
	for name, hits := range map[string]int{"refused": 6, "at the quota": 5, "one before": 4} {
		t.Run(name, func(t *testing.T) {
			s := open(t, 1000)
			for range hits {
				take(t, s, "offender", limit)
			}
			for i := range 200_000 {
				take(t, s, "flood"+strconv.Itoa(i), limit)
			}
			allowed := 0
			for range 5 {
				if take(t, s, "offender", limit).Allowed {
					allowed++
				}
			}
			require.Equal(t, max(0, 5-hits), allowed)
			stats := s.Stats()
			require.Equal(t, 1000, stats.Keys)
			require.Equal(t, uint64(199_001), stats.Evicted)
			require.Equal(t, stats.Evicted, stats.EvictedLive)
			require.Zero(t, stats.EvictedHeld)
		})
	}
}

// A flood under one limit evicts nothing under another.
func TestShapesAreApart(t *testing.T) {
	s := open(t, 100)
	login := stores.FixedWindow(3, time.Minute)
	take(t, s, "someone", login)
	for i := range 10_000 {
		take(t, s, "flood"+strconv.Itoa(i), stores.Cooldown(time.Hour))
	}
	require.Equal(t, 1, take(t, s, "someone", login).Remaining)
	require.Equal(t, 101, s.Len())
	require.Equal(t, 100, s.Stats().Held)
}

func TestMoreShapesThanTables(t *testing.T) {
	s := open(t, 10)
	for i := range 40 {
		limit := stores.FixedWindow(1, time.Hour+time.Duration(i)*time.Second)
		require.True(t, take(t, s, "key"+strconv.Itoa(i), limit).Allowed)
		require.False(t, take(t, s, "key"+strconv.Itoa(i), limit).Allowed)
	}
	require.LessOrEqual(t, s.Len(), 10*16)
}

func TestTakeDoesNotAllocate(t *testing.T) {
	s := open(t, 100)
	limit := stores.FixedWindow(5, time.Hour)
	keys := names(1000)
	for _, key := range keys {
		take(t, s, key, limit)
	}
	ctx, i := context.Background(), 0
	require.Zero(t, testing.AllocsPerRun(5000, func() {
		i++
		_, _ = s.Take(ctx, stores.Hit{Key: keys[i%len(keys)], Limit: limit})
		_, _ = s.Take(ctx, stores.Hit{Key: keys[0], Limit: limit})
	}))
}

// Of the hits that arrive with an old reading of the clock none opens a second
// window beside the one that a newer reading opened.
func TestReadingsOutOfOrder(t *testing.T) {
	s := open(t, 10)
	limit := stores.FixedWindow(5, time.Second)
	c := s.tables.counters.Of(shapeOf(&limit))
	second := int64(time.Second)
	allowed := 0
	for range 2000 {
		now := second + rand.Int64N(second/2) // all within half a window
		d := c.take("key", limit, 1, 0, 0, now)
		if d.Allowed {
			allowed++
		}
		require.LessOrEqual(t, d.RetryAfter, limit.Window)
		require.LessOrEqual(t, d.ResetAfter, limit.Window)
	}
	require.Equal(t, 5, allowed)
}

// The same key created, refused, expired and evicted by many at once.
func TestParallelExpiryAndEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 20)
		limit := stores.FixedWindow(5, time.Second)
		for range 50 {
			var allowed atomic.Int64
			var wg sync.WaitGroup
			for g := range 100 {
				wg.Go(func() {
					if take(t, s, "key", limit).Allowed {
						allowed.Add(1)
					}
					take(t, s, "other"+strconv.Itoa(g%30), limit)
				})
			}
			wg.Wait()
			require.Equal(t, int64(5), allowed.Load())
			require.LessOrEqual(t, s.Len(), 20)
			time.Sleep(time.Second)
		}
	})
}

func TestTakeOwing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 10)
		hit := stores.Hit{Key: "key", Limit: stores.FixedWindow(5, 10*time.Second)}
		owing := func(owed int, until time.Duration) stores.Decision {
			d, err := s.TakeOwing(t.Context(), hit, owed, until)
			require.NoError(t, err)
			return d
		}
		d := owing(3, 4*time.Second)
		require.True(t, d.Allowed)
		require.Equal(t, 1, d.Remaining)
		require.Equal(t, 4*time.Second, d.ResetAfter, "a window that a payment opens ends with the debt")
		time.Sleep(time.Second)
		d = owing(9, 10*time.Second)
		require.False(t, d.Allowed, "the level is the quota")
		require.Equal(t, 3*time.Second, d.RetryAfter, "no payment moves a window's end")
		time.Sleep(3 * time.Second)
		require.Equal(t, 4, take(t, s, "key", hit.Limit).Remaining)

		require.Equal(t, 3, owing(3, 0).Remaining, "a debt whose window is over is none")

		for _, bad := range []struct {
			owed  int
			until time.Duration
		}{{-1, time.Second}, {1, -1}, {1, 11 * time.Second}} {
			_, err := s.TakeOwing(t.Context(), hit, bad.owed, bad.until)
			require.ErrorIs(t, err, stores.ErrInvalid)
		}
	})
}

func TestTakeAll(t *testing.T) {
	s := open(t, 10)
	limit := stores.FixedWindow(2, time.Hour)
	hits := []stores.Hit{{Key: "a", Limit: limit}, {Key: "b", Limit: limit, Cost: 2}, {Key: "c", Limit: limit}}
	out := make([]stores.Decision, 4)
	n, err := s.TakeAll(t.Context(), hits, out)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	n, err = s.TakeAll(t.Context(), hits, out)
	require.NoError(t, err)
	require.Equal(t, 2, n, "b refuses, c is not asked")
	require.True(t, out[0].Allowed)
	require.False(t, out[1].Allowed)
	require.Equal(t, 0, take(t, s, "c", limit).Remaining, "c had one hit before this")
	_, err = s.TakeAll(t.Context(), hits, out[:2])
	require.ErrorIs(t, err, stores.ErrInvalid)
}

// A full table of 50,000 keys fits into what a small instance can spare.
func TestMemoryOfAFullTable(t *testing.T) {
	s := open(t, 0)
	limit := stores.FixedWindow(5, time.Hour)
	keys := names(60_000)
	before := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			s = open(b, 0)
			for _, key := range keys {
				_, _ = s.Take(context.Background(), stores.Hit{Key: key, Limit: limit})
			}
		}
	})
	require.Equal(t, 50_000, s.Len())
	// All tables that were outgrown on the way are in this sum: twice the last one.
	require.Less(t, before.AllocedBytesPerOp(), int64(2*3.5*(1<<20)))
}
