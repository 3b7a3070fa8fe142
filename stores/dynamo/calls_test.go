package dynamo

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
)

// bill is what decisions about one kind of limit cost, in calls.
type bill struct {
	New, Warm, Cold, Refused, RefusedCold, Over, OverCold, Owing, OwingCold, Block, Blocked, BlockedCold, Peek, Refund, Reset int
}

var bills = map[stores.Algorithm]bill{
	stores.Fixed:   {1, 1, 2, 1, 1, 1, 1, 1, 2, 2, 1, 1, 1, 1, 1},
	stores.Sliding: {1, 1, 2, 1, 1, 1, 1, 1, 2, 2, 1, 1, 1, 1, 1},
	stores.Log:     {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 2, 1},
	stores.Token:   {1, 1, 2, 1, 1, 1, 1, 1, 2, 2, 1, 1, 1, 1, 1},
	stores.Leaky:   {1, 1, 2, 1, 1, 1, 1, 1, 2, 2, 1, 1, 1, 1, 1},
}

// What a decision costs is a promise to whoever pays the bill, for each kind of limit.
func TestCallsOfEveryLimit(t *testing.T) {
	var table strings.Builder
	for _, limit := range everyLimit(4, time.Minute) {
		synctest.Test(t, func(t *testing.T) {
			server := dynamotest.New(t)
			s := newStore(t, server.Client())
			cold := func() *Store { return newStore(t, server.Client()) }
			h := stores.Hit{Key: "k", Limit: limit}
			count := func(do func()) int {
				server.ResetCalls()
				do()
				return server.Calls("")
			}
			calls := func(s *Store, h stores.Hit, allowed bool) int {
				t.Helper()
				return count(func() { require.Equal(t, allowed, take(t, s, h).Allowed) })
			}
			var b bill
			b.New = calls(s, h, true)
			b.Warm = calls(s, h, true)
			if limit.Algorithm == stores.Log {
				// A guess among four slots, two of which are taken, is wrong half of the time. That
				// it costs one call more is told here once and for all, without chance.
				n := count(func() { require.True(t, take(t, cold(), h).Allowed) })
				require.LessOrEqual(t, n, 2)
				b.Cold = 1
			} else {
				b.Cold = calls(cold(), h, true)
			}
			require.True(t, take(t, s, h).Allowed)
			b.Refused = calls(s, h, false)
			b.RefusedCold = calls(cold(), h, false)
			time.Sleep(2 * time.Minute)
			b.OverCold = calls(cold(), h, true)
			time.Sleep(2 * time.Minute)
			b.Over = calls(s, h, true)
			b.Owing = count(func() { require.True(t, takeOwing(t, s, h, 1, time.Second).Allowed) })
			require.NoError(t, s.Reset(t.Context(), h))
			take(t, s, h)
			if limit.Algorithm == stores.Log {
				n := count(func() { require.True(t, takeOwing(t, cold(), h, 1, time.Second).Allowed) })
				require.LessOrEqual(t, n, 2)
				b.OwingCold = 1
			} else {
				b.OwingCold = count(func() { require.True(t, takeOwing(t, cold(), h, 1, time.Second).Allowed) })
			}
			b.Peek = count(func() { _, err := s.Peek(t.Context(), h); require.NoError(t, err) })
			b.Refund = count(func() { require.NoError(t, s.Refund(t.Context(), h)) })
			b.Reset = count(func() { require.NoError(t, s.Reset(t.Context(), h)) })

			h = costing(stores.Hit{Key: "blocked", Limit: limit.BlockFor(time.Hour)}, 3)
			require.True(t, take(t, s, h).Allowed)
			b.Block = calls(s, h, false)
			b.Blocked = calls(s, h, false)
			b.BlockedCold = calls(cold(), costing(h, 1), false)
			time.Sleep(time.Hour)
			require.Equal(t, 1, calls(s, h, true), "when the block is over")
			require.Zero(t, calls(s, costing(h, 5), false), "a cost above the quota")

			fmt.Fprintf(&table, "\n%-8s %+v", limit.Algorithm, b)
			require.Equal(t, bills[limit.Algorithm], b, limit.String())
		})
	}
	t.Log(table.String())
}

// Whatever is there, nobody interfering: a hit whose guess is wrong costs one call more.
func TestTwoCallsAreEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		for _, limit := range everyLimit(100, time.Minute) {
			for used := range 100 {
				h := stores.Hit{Key: fmt.Sprint(limit.Algorithm, used), Limit: limit}
				if used > 0 {
					require.True(t, take(t, newStore(t, server.Client()), costing(h, used)).Allowed)
				}
				server.ResetCalls()
				require.True(t, take(t, newStore(t, server.Client()), costing(h, 100-used)).Allowed)
				require.LessOrEqual(t, server.Calls(""), 2, "%v with %d used", limit, used)
				require.False(t, take(t, newStore(t, server.Client()), h).Allowed)
			}
		}
	})
}
