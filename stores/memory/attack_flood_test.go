package memory

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// ways are all the ways of counting, with a quota of 5 an hour.
var ways = []stores.Limit{
	stores.FixedWindow(5, time.Hour),
	stores.SlidingWindow(5, time.Hour),
	stores.SlidingLog(5, time.Hour),
	stores.TokenBucket(5, time.Hour),
	stores.LeakyBucket(5, time.Hour),
	stores.FixedWindow(5, time.Hour).BlockFor(2 * time.Hour),
	stores.SlidingWindow(5, time.Hour).BlockFor(2 * time.Hour),
	stores.SlidingLog(5, time.Hour).BlockFor(2 * time.Hour),
	stores.TokenBucket(5, time.Hour).BlockFor(2 * time.Hour),
	stores.LeakyBucket(5, time.Hour).BlockFor(2 * time.Hour),
}

// However a limit counts: a flood of other keys makes the store forget nobody who has
// used up his quota, silent or not, and takes no more room than it was given.
func TestFloodUnderEveryLimit(t *testing.T) {
	const maxKeys = 300
	for _, limit := range ways {
		t.Run(limit.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, maxKeys)
				silent := limit
				for range 5 {
					require.True(t, take(t, s, "silent", silent).Allowed)
				}
				for range 6 {
					take(t, s, "knocking", limit)
				}
				for i := range 6000 {
					require.True(t, take(t, s, "flood"+strconv.Itoa(i), limit).Allowed, "a newcomer is served")
					if i%100 == 0 {
						d := take(t, s, "knocking", limit)
						require.False(t, d.Allowed)
						require.Positive(t, d.RetryAfter)
						require.LessOrEqual(t, s.Len(), maxKeys)
					}
				}
				require.False(t, take(t, s, "silent", limit).Allowed)
				stats := s.Stats()
				require.Positive(t, stats.EvictedLive)
				require.Zero(t, stats.EvictedHeld)
				require.GreaterOrEqual(t, stats.Held, 2)
			})
		})
	}
}

// After the flood is over and its keys are, nothing of it is left to be in anybody's way.
func TestFloodLeavesNothingBehind(t *testing.T) {
	const maxKeys = 300
	for _, limit := range ways {
		t.Run(limit.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, maxKeys)
				for i := range 2000 {
					for range 6 {
						take(t, s, "flood"+strconv.Itoa(i), limit)
					}
				}
				time.Sleep(4 * time.Hour)
				before := s.Stats().EvictedLive
				for i := range maxKeys / 2 {
					require.Equal(t, 4, take(t, s, "honest"+strconv.Itoa(i), limit).Remaining)
				}
				require.Equal(t, before, s.Stats().EvictedLive, "there is room for the living")
				for i := range maxKeys / 2 {
					require.Equal(t, 3, take(t, s, "honest"+strconv.Itoa(i), limit).Remaining)
				}
			})
		})
	}
}

// A hit is decided without allocating, whatever the limit; only a log that grows makes
// room for its pages now and then.
func TestNoLimitAllocates(t *testing.T) {
	for _, limit := range ways {
		s := open(t, 100)
		keys := names(1000)
		for range 2 { // what grows has grown then
			for _, key := range keys {
				take(t, s, key, limit)
			}
		}
		i := 0
		ctx := t.Context()
		require.Zero(t, testing.AllocsPerRun(3000, func() {
			i++
			hit := stores.Hit{Key: keys[i%len(keys)], Limit: limit}
			_, _ = s.Take(ctx, hit)
			_, _ = s.Peek(ctx, hit)
			_ = s.Refund(ctx, hit)
			_, _ = s.TakeOwing(ctx, hit, 1, time.Minute)
		}), limit.String())
	}
}
