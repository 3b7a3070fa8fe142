package dynamo

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
)

func TestHintsAreBounded(t *testing.T) {
	h := newHints(1000)
	end, seen := h.recall("unknown")
	require.Zero(t, end)
	require.Zero(t, seen)
	h.learn("in use", 7, hint{n: 3, p: 4})
	for i := range 100_000 {
		h.learn(fmt.Sprint(i), int64(i+1), hint{n: int64(i)})
		require.LessOrEqual(t, h.table.Len(), 1000)
		if i%400 == 0 {
			end, seen = h.recall("in use")
			require.Equal(t, int64(7), end, "what is in use outlives a flood")
			require.Equal(t, hint{n: 3, p: 4}, seen)
		}
	}
	end, seen = h.recall("99999")
	require.Equal(t, int64(100_000), end)
	require.Equal(t, int64(99_999), seen.n)
	end, _ = h.recall("0")
	require.Zero(t, end)
	h.learn("in use", 9, hint{})
	end, seen = h.recall("in use")
	require.Equal(t, int64(9), end)
	require.Zero(t, seen)
	h.forget("in use")
	end, _ = h.recall("in use")
	require.Zero(t, end)
}

// A log's hint tells which slots are free, and which one will be next.
func TestHintOfALog(t *testing.T) {
	tk := newTaking(nil, logHit("k", 5, 1000))
	s := &state{there: true, slots: new([maxLog]int64)}
	const now = 10_000_000
	s.slots[0], s.slots[2], s.slots[66], s.slots[99] = now-1000, now-1001*1000, now-10, now-999_999
	end, seen := tk.hintOfLog(s, now)
	require.Equal(t, int64(now-10+1_000_000), end)
	slots := seen.slots(end, now)
	require.Equal(t, []int64{now, 0, now, now}, []int64{slots[0], slots[2], slots[66], slots[99]})
	require.Zero(t, seen.slots(end, now+1)[99], "the oldest is over")
	require.NotZero(t, seen.slots(end, now+1)[0])
	require.Equal(t, new([maxLog]int64), seen.slots(end, end), "all are over")
	require.Equal(t, new([maxLog]int64), (&hint{n: -5, p: 1 << 40}).slots(end, now))
}

// A stamp counts for a window to the microsecond, and not in the one after.
func TestLogEndsToTheMicrosecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newStore(t, dynamotest.New(t).Client()), logHit("k", 2, 1000)
		require.True(t, take(t, s, costing(h, 2)).Allowed)
		time.Sleep(time.Second - time.Microsecond)
		d, err := s.Peek(t.Context(), h)
		require.NoError(t, err)
		require.Equal(t, stores.Decision{RetryAfter: time.Millisecond, ResetAfter: time.Millisecond}, d)
		require.Equal(t, d, take(t, s, h))
		time.Sleep(time.Microsecond)
		d, err = s.Peek(t.Context(), h)
		require.NoError(t, err)
		require.Equal(t, stores.Decision{Allowed: true, Remaining: 2}, d)
		require.True(t, take(t, s, costing(h, 2)).Allowed)
	})
}
