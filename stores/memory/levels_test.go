package memory

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// The store keeps for each key what package meter makes of it, through all methods, with
// quotas that change, and without room for all keys as long as none that is live has
// to go.
func TestLevelsKeepWhatMeterSays(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) { levelHistory(t, seed, 400) })
	}
}

func levelHistory(t *testing.T, seed uint64, steps int) {
	rng := rand.New(rand.NewPCG(seed, 21))
	s := open(t, 8)
	var limit stores.Limit
	for limit = ways[0]; plain(&limit) || limit.Algorithm == stores.Log; {
		limit = ways[rng.IntN(len(ways))]
	}
	limit.Window = time.Millisecond + time.Duration(rng.IntN(50_000))*time.Microsecond
	if limit.Block > 0 {
		limit.Block = time.Millisecond + time.Duration(rng.IntN(50_000))*time.Microsecond
	}
	twins := make(map[string]*meter.State)
	start := time.Now()
	now := func() int64 { return (int64(time.Since(start)) + 1) / 1000 }
	s.clock.Now()
	for step := range steps {
		time.Sleep(time.Duration(rng.Int64N(int64(limit.Window) / (1 + rng.Int64N(10)))))
		limit.Quota = 1 + rng.IntN(6)>>rng.IntN(2)
		rule := meter.Of(limit)
		hit := stores.Hit{Key: strconv.Itoa(rng.IntN(7)), Limit: limit, Cost: rng.IntN(limit.Quota + 2)}
		cost := int64(max(1, hit.Cost))
		twin := twins[hit.Key]
		if twin == nil {
			twin = new(meter.State)
			twins[hit.Key] = twin
		}
		var got stores.Decision
		var want meter.Answer
		var err error
		switch rng.IntN(8) {
		case 0:
			require.NoError(t, s.Refund(t.Context(), hit))
			rule.Refund(twin, cost, now())
			continue
		case 1:
			got, err = s.Peek(t.Context(), hit)
			want = rule.Peek(*twin, cost, now())
		case 2:
			owed, until := rng.IntN(limit.Quota+2), time.Duration(rng.Int64N(int64(limit.Window)+1))
			got, err = s.TakeOwing(t.Context(), hit, owed, until)
			rule.Pay(twin, int64(owed), ceilMicrosecond(until), now())
			want = rule.Take(twin, cost, now())
		case 3:
			if rng.IntN(4) == 0 {
				require.NoError(t, s.Reset(t.Context(), hit))
				*twin = meter.State{}
			}
			continue
		default:
			if hit.Cost > limit.Quota {
				hit.Cost, cost = 1, 1 // TakeOwing and Peek tell of such a one
			}
			got, err = s.Take(t.Context(), hit)
			want = rule.Take(twin, cost, now())
		}
		require.NoError(t, err)
		require.Equal(t, want.Decision(stores.Local), got, "seed %d step %d: %s cost %d", seed, step, limit, cost)
	}
	require.Zero(t, s.Stats().EvictedLive)
}

// Of the hits that arrive with an old reading of the clock none gets more than with the
// newest, under any limit; and nobody is told to wait for longer than there is reason to.
func TestReadingsOutOfOrderUnderEveryLimit(t *testing.T) {
	for _, limit := range ways {
		k := newTables(10).of(&limit)
		allowed := 0
		for range 2000 {
			now := int64(time.Hour) + rand.Int64N(int64(time.Minute))
			d := k.take("key", limit, 1, 0, 0, now)
			if d.Allowed {
				allowed++
			}
			require.LessOrEqual(t, d.RetryAfter, 2*time.Hour)
		}
		require.Equal(t, 5, allowed, limit.String())
	}
}

// Exactly the quota passes of many at once, under every limit, each time anew.
func TestParallelUnderEveryLimit(t *testing.T) {
	for _, limit := range ways {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 20)
			for range 10 {
				var allowed atomic.Int64
				var wg sync.WaitGroup
				for g := range 50 {
					wg.Go(func() {
						if take(t, s, "key", limit).Allowed {
							allowed.Add(1)
						}
						take(t, s, "other"+strconv.Itoa(g), limit)
						_, _ = s.Peek(t.Context(), stores.Hit{Key: "key", Limit: limit})
					})
				}
				wg.Wait()
				require.Equal(t, int64(5), allowed.Load(), limit.String())
				require.LessOrEqual(t, s.Len(), 20)
				time.Sleep(3 * time.Hour)
			}
		})
	}
}

// Limits of more shapes than there are tables still count, whichever came first, and
// nobody shares a table with records of another kind.
func TestMoreShapesThanTablesOfEveryKind(t *testing.T) {
	s := open(t, 10)
	for i := range 120 {
		limit := ways[i%len(ways)]
		limit.Window += time.Duration(i) * time.Second
		key := "key" + strconv.Itoa(i)
		require.Equal(t, 4, take(t, s, key, limit).Remaining)
		d, err := s.Take(t.Context(), stores.Hit{Key: key, Limit: limit, Cost: 4})
		require.NoError(t, err)
		require.True(t, d.Allowed)
		require.False(t, take(t, s, key, limit).Allowed, limit.String())
	}
	tables := 0
	s.tables.counters.All(func(*counters) { tables++ })
	s.tables.levels.All(func(*levels) { tables++ })
	s.tables.logs.All(func(*logs) { tables++ })
	require.Equal(t, 16, tables)
	require.LessOrEqual(t, s.Len(), 160)
}

// A hit whose cost is above the quota is nothing to keep, even where a debt is looked at.
func TestNothingToKeep(t *testing.T) {
	for _, limit := range ways {
		s := open(t, 10)
		hit := stores.Hit{Key: "key", Limit: limit, Cost: 6}
		d, err := s.TakeOwing(t.Context(), hit, 0, time.Minute)
		require.NoError(t, err)
		require.Equal(t, stores.Decision{Source: stores.Local, Remaining: 5}, d, limit.String())
		require.Zero(t, s.Len(), limit.String())
		require.NoError(t, s.Refund(t.Context(), hit))
		_, err = s.Peek(t.Context(), hit)
		require.NoError(t, err)
		require.Zero(t, s.Len(), limit.String())
	}
}

// Who is blocked is held for as long as that lasts, whatever his level; who begins anew is
// not held for what he did before.
func TestHeldWhileBlocked(t *testing.T) {
	for _, limit := range ways {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 10)
			limit.Quota = 2
			for range 3 {
				take(t, s, "key", limit)
			}
			require.Equal(t, 1, s.Stats().Held, limit.String())
			if limit.Block > 0 {
				time.Sleep(limit.Block - time.Second) // to here no level lasts
				require.False(t, take(t, s, "key", limit).Allowed)
				require.Equal(t, 1, s.Stats().Held, limit.String())
			}
			time.Sleep(2 * limit.Window)
			require.True(t, take(t, s, "key", limit).Allowed)
			require.Zero(t, s.Stats().Held, limit.String())
		})
	}
}

func TestSupports(t *testing.T) {
	s := open(t, 10)
	for _, limit := range ways {
		require.NoError(t, s.Supports(limit))
	}
	require.Error(t, s.Supports(stores.Limit{Algorithm: 9, Quota: 1, Window: time.Second}))
	require.Error(t, (*Store)(nil).Supports(ways[0]))
}
