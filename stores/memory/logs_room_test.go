package memory

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// Many keys under a small cap: what is kept of a key is exact until it is forgotten
// as a whole, the cap holds for keys and pages together, and no page is lost.
func TestLogsUnderPressure(t *testing.T) {
	for _, maxKeys := range []int{2, 3, 8, 17, 64} {
		t.Run(strconv.Itoa(maxKeys), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(maxKeys), 12))
			limit := stores.SlidingLog(perPage, time.Duration(10+maxKeys)*100*time.Microsecond)
			for limit.Quota < 100 && fits(limit.Quota+1, maxKeys) == nil {
				limit.Quota++
			}
			l := newLogs(maxKeys)
			keys := names(maxKeys + 10)
			models := make(map[string]*units)
			now := int64(1)
			for step := range 1500 {
				now += rng.Int64N(30)
				key := keys[rng.IntN(len(keys))>>rng.IntN(4)]
				u := models[key]
				if l.Find(l.Hash(key)) < 0 || u == nil {
					u = new(units) // new, or forgotten as a whole
					models[key] = u
				}
				u.expire(now - ceilMicrosecond(limit.Window))
				cost := 1 + rng.Int64N(int64(limit.Quota))>>rng.IntN(6)
				if rng.IntN(20) == 0 {
					l.refund(key, limit, cost, now*1000)
					u.refund(cost, int64(limit.Quota))
				} else {
					require.Equal(t, u.answer(limit, cost, now, false).Decision(stores.Local), l.take(key, limit, cost, 0, 0, now*1000), "step %d", step)
				}
				if step%16 == 0 || maxKeys < 10 {
					l.check(t, keys)
				}
			}
			require.Positive(t, l.Table.Stats().EvictedLive)
		})
	}
}

// A log that one key could not be counted by is an error that says what to do, and
// the largest that is none is counted to its end, entry by entry.
func TestLargestLog(t *testing.T) {
	for _, maxKeys := range []int{1, 2, 3, 4, 10, 100} {
		s := open(t, maxKeys)
		quota := 0
		for s.Supports(stores.SlidingLog(quota+1, time.Hour)) == nil {
			quota++
		}
		err := s.Supports(stores.SlidingLog(quota+1, time.Hour))
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, "use sliding")
		_, err = s.Take(t.Context(), stores.Hit{Key: "key", Limit: stores.SlidingLog(quota+1, time.Hour)})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.Zero(t, s.Len())
		if maxKeys == 1 {
			require.Zero(t, quota)
			continue
		}
		require.GreaterOrEqual(t, quota, perPage*(maxKeys-2))
		// The entries begin at every place of a page.
		for offset := range int64(perPage) {
			limit := stores.SlidingLog(quota, time.Second)
			l := newLogs(maxKeys)
			now := int64(1)
			for range offset {
				l.take("key", limit, 1, 0, 0, now)
				now += 1000
			}
			for range quota {
				now += 1000
				l.take("key", limit, 1, 0, 0, now)
			}
			now = offset*1000 + int64(time.Second) + 1 // the first ones are over
			for n := range offset {
				require.True(t, l.take("key", limit, 1, 0, 0, now+n*1000).Allowed, "cap %d offset %d", maxKeys, offset)
			}
			l.check(t, []string{"key"})
		}
	}
}

// Where nothing else can be forgotten for its pages, a key is refused and not let through.
func TestLogWithoutRoom(t *testing.T) {
	limit := stores.SlidingLog(100, time.Second) // more than New would permit
	l := newLogs(3)
	for n := range int64(2 * perPage) {
		require.True(t, l.take("key", limit, 1, 0, 0, 1+n*1000).Allowed)
	}
	d := l.take("key", limit, 1, 0, 0, 100_000)
	require.False(t, d.Allowed)
	require.Equal(t, time.Second, d.RetryAfter)
	l.check(t, []string{"key"})
	require.True(t, l.take("key", limit, 1, 0, 0, 100_000+int64(time.Second)).Allowed)
	l.check(t, []string{"key"})

	// Of the pages that a large cost needs some were to be had, and are given back.
	limit.Quota = 20 * maxCount
	l = newLogs(3)
	require.True(t, l.take("key", limit, 1, 0, 0, 1).Allowed)
	require.False(t, l.take("key", limit, 14*maxCount, 0, 0, 1_000_000).Allowed)
	l.check(t, []string{"key"})
}

// Hits at one moment share entries, however many they are: a burst takes no more pages
// than its total needs.
func TestBurstOfOneMoment(t *testing.T) {
	limit := stores.SlidingLog(50_000, time.Second)
	l := newLogs(10_000)
	for range 30_000 {
		require.True(t, l.take("key", limit, 1, 0, 0, 1_000_000).Allowed)
	}
	require.True(t, l.take("key", limit, 20_000, 0, 0, 1_000_000).Allowed)
	require.False(t, l.take("key", limit, 1, 0, 0, 1_000_000).Allowed)
	require.LessOrEqual(t, 10_000-l.Room(), 50_000/maxCount/perPage+1)
	l.check(t, []string{"key"})
}

// A key whose stamps are over is a new one, but for its block.
func TestLogIsOver(t *testing.T) {
	second := int64(time.Second)
	limit := stores.SlidingLog(2, time.Second)
	l := newLogs(10)
	l.take("key", limit, 2, 0, 0, 1)
	require.Equal(t, 1, l.HeldLen())
	require.Equal(t, 1, l.take("key", limit, 1, 0, 0, 1+second).Remaining)
	require.Zero(t, l.HeldLen(), "half of a quota is no reason to hold a key that begins anew")

	limit.Block = time.Minute
	l = newLogs(10)
	l.take("key", limit, 2, 0, 0, 1)
	require.False(t, l.take("key", limit, 1, 0, 0, 1).Allowed)
	d := l.take("key", limit, 1, 0, 0, 1+second) // to the microsecond
	require.Equal(t, stores.Decision{Source: stores.Local, RetryAfter: 59 * time.Second, ResetAfter: 59 * time.Second}, d)
	l.check(t, []string{"key"})
	require.Equal(t, 10, l.Room(), "a block needs no pages")
	require.Equal(t, 1, l.HeldLen(), "who is blocked is held")
	require.True(t, l.take("key", limit, 1, 0, 0, 1+60*second).Allowed)
}

// A part of a microsecond is rounded up: nobody gets in before his window is over.
func TestPartsOfAMicrosecond(t *testing.T) {
	limit := stores.SlidingLog(1, time.Millisecond+1)
	l := newLogs(10)
	l.take("key", limit, 1, 0, 0, 1000)
	require.False(t, l.take("key", limit, 1, 0, 0, 1000+int64(time.Millisecond)).Allowed)
	require.True(t, l.take("key", limit, 1, 0, 0, 2000+int64(time.Millisecond)).Allowed)
}

// A page is no larger than a slot, and a slot of 64 bytes has 32 for its record.
func TestSizes(t *testing.T) {
	require.Equal(t, uintptr(64), unsafe.Sizeof(page{}))
	require.LessOrEqual(t, unsafe.Sizeof(queue{}), uintptr(32))
	require.LessOrEqual(t, unsafe.Sizeof(meter.State{}), uintptr(32))
}
