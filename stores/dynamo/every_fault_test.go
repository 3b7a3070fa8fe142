package dynamo

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// everyFault are the ways of a call to fail, and whether it was carried out then.
var everyFault = []struct {
	name    string
	do      dynamotest.Manner
	applied bool
}{
	{"cut before", dynamotest.DropBefore(), false},
	{"cut after", dynamotest.DropAfter(), true},
	{"silence", dynamotest.Hang(), false},
	{"silence after", dynamotest.HangAfter(), true},
	{"body cut", dynamotest.CutBody(), true},
	{"500 after", dynamotest.FailAfter(500, "InternalServerError", ""), true},
	{"throttled", dynamotest.Throttle("ThrottlingException"), false},
	{"throttled key", dynamotest.Throttle("ThrottlingException", "TableWriteKeyRangeThroughputExceeded"), false},
	{"denied", dynamotest.Fail(400, "AccessDeniedException", "no"), false},
}

// level is how much of the quota of 10 is used, by what is let in still.
func level(t *testing.T, server *dynamotest.Server, h stores.Hit) int {
	t.Helper()
	d, err := newStore(t, server.Client()).Peek(t.Context(), h)
	require.NoError(t, err)
	return 10 - d.Remaining
}

// forEveryLimit runs f for each kind of limit, of quota 10, with a block and without,
// in a bubble.
func forEveryLimit(t *testing.T, f func(t *testing.T, h stores.Hit)) {
	for _, limit := range everyLimit(10, time.Hour) {
		for _, block := range []time.Duration{0, 2 * time.Hour} {
			h := stores.Hit{Key: marker, Limit: limit.BlockFor(block)}
			t.Run(h.Limit.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { f(t, h) })
			})
		}
	}
}

// A call that fails counts, pays or gives back once at most, and where the error is
// definite not at all; nothing is sent again.
func TestEveryFaultOfEveryLimit(t *testing.T) {
	forEveryLimit(t, func(t *testing.T, h stores.Hit) {
		for _, ff := range everyFault {
			for _, used := range []int{0, 4} {
				for _, warm := range []bool{false, true} {
					for method, do := range map[string]struct {
						call func(context.Context, *Store) error
						full int // what it does to the level
					}{
						"Take": {func(ctx context.Context, s *Store) error { _, err := s.Take(ctx, costing(h, 2)); return err }, 2},
						"TakeOwing": {func(ctx context.Context, s *Store) error {
							_, err := s.TakeOwing(ctx, costing(h, 2), 3, time.Hour)
							return err
						}, 5},
						"pay": {func(ctx context.Context, s *Store) error {
							_, err := s.TakeOwing(ctx, costing(h, 10), 3, time.Hour)
							return err
						}, 3},
						"Refund": {func(ctx context.Context, s *Store) error { return s.Refund(ctx, costing(h, 2)) }, -2},
					} {
						what := fmt.Sprintf("%s: %s, %d used, warm %v", ff.name, method, used, warm)
						server := dynamotest.New(t)
						s := newStore(t, server.Client())
						if used > 0 {
							take(t, s, costing(h, used))
						}
						if !warm {
							s = newStore(t, server.Client())
						}
						for skip := range 2 {
							before := level(t, server, h)
							server.ResetCalls()
							server.SetFault(dynamotest.Fault{Action: "UpdateItem", Skip: skip, Times: 1, Do: ff.do})
							ctx, cancel := context.WithTimeout(t.Context(), time.Second)
							err := do.call(ctx, s)
							cancel()
							server.ClearFaults()
							require.LessOrEqual(t, server.Calls(""), 4, what)
							changed := level(t, server, h) - before
							switch {
							case err == nil, !fault.Definite(err) && ff.applied:
								require.Contains(t, []int{0, do.full, max(do.full, -before), min(do.full, 10-before)}, changed, what)
							default:
								require.Zero(t, changed, what)
							}
							if err != nil {
								requireSecretless(t, err)
							}
							if h.Limit.Block > 0 {
								break // a block may be on
							}
						}
					}
				}
			}
		}
	})
}

// The refusal that starts a block stands, whatever becomes of the block: an error of the
// second call is none of the decision.
func TestEveryFaultOfABlock(t *testing.T) {
	forEveryLimit(t, func(t *testing.T, h stores.Hit) {
		if h.Limit.Block == 0 {
			return
		}
		for _, ff := range everyFault {
			for _, times := range []int{1, 0} {
				server := dynamotest.New(t)
				s := newStore(t, server.Client())
				require.True(t, take(t, s, costing(h, 10)).Allowed)
				server.ResetCalls()
				server.SetFault(dynamotest.Fault{Skip: 1, Times: times, Do: ff.do})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				d, err := s.Take(ctx, h)
				cancel()
				server.ClearFaults()
				what := fmt.Sprintf("%s, %d times: %+v", ff.name, times, d)
				require.NoError(t, err, what)
				require.False(t, d.Allowed, what)
				require.LessOrEqual(t, server.Calls(""), 3, what)
				require.Positive(t, d.RetryAfter, what)

				after, err := newStore(t, server.Client()).Peek(t.Context(), h)
				require.NoError(t, err)
				require.False(t, after.Allowed, what)
				require.LessOrEqual(t, d.RetryAfter, after.RetryAfter+time.Second, "never longer than the table says: %s", what)
				if ff.applied {
					require.Greater(t, after.RetryAfter, time.Hour, "the block is on: %s", what)
				}
				if times == 1 && ff.name[:3] == "cut" {
					require.Equal(t, 2*time.Hour, d.RetryAfter, "the second try tells: %s", what)
				}
			}
		}
	})
}

// A block that others started meanwhile, or a key that was reset, is what counts.
func TestBlockIsStartedOnce(t *testing.T) {
	forEveryLimit(t, func(t *testing.T, h stores.Hit) {
		if h.Limit.Block == 0 {
			return
		}
		server := dynamotest.New(t)
		s, other := newStore(t, server.Client()), newStore(t, server.Client())
		take(t, s, costing(h, 10))
		meanwhile := func(do func()) {
			server.ClearFaults()
			server.SetFault(dynamotest.Fault{Action: "UpdateItem", Skip: 1, Times: 1, Do: func(_ context.Context, apply func() dynamotest.Reply) (dynamotest.Reply, error) {
				server.ClearFaults()
				do()
				return apply(), nil
			}})
		}
		meanwhile(func() {
			require.NoError(t, other.Reset(t.Context(), h))
		})
		d := take(t, s, h)
		require.False(t, d.Allowed)
		require.Less(t, d.RetryAfter, 2*time.Hour)
		require.Nil(t, server.Item(t, h.Key), "no block comes back from before a Reset")

		server.ClearFaults()
		take(t, s, costing(h, 10))
		meanwhile(func() {
			time.Sleep(time.Minute)
			require.Equal(t, 2*time.Hour, take(t, other, h).RetryAfter)
		})
		d = take(t, s, h)
		require.LessOrEqual(t, d.RetryAfter, 2*time.Hour)
		time.Sleep(2*time.Hour - time.Millisecond)
		require.False(t, take(t, s, h).Allowed)
		time.Sleep(time.Millisecond)
		require.True(t, take(t, s, h).Allowed, "over when the one that is on said")
	})
}

// A payment in a block is made while that block is on; where it was lifted meanwhile, the hit
// is let in behind it.
func TestPaymentMeetsALiftedBlock(t *testing.T) {
	forEveryLimit(t, func(t *testing.T, h stores.Hit) {
		if h.Limit.Block == 0 {
			return
		}
		server := dynamotest.New(t)
		s, other := newStore(t, server.Client()), newStore(t, server.Client())
		take(t, s, costing(h, 10))
		require.False(t, take(t, s, h).Allowed)
		time.Sleep(110 * time.Minute) // what is below the block is over, but a part of what slides
		server.SetFault(dynamotest.Fault{Action: "UpdateItem", Skip: 1, Times: 1, Do: func(_ context.Context, apply func() dynamotest.Reply) (dynamotest.Reply, error) {
			server.ClearFaults()
			require.NoError(t, other.Reset(t.Context(), h))
			return apply(), nil
		}})
		d := takeOwing(t, newStore(t, server.Client()), h, 3, time.Hour)
		require.True(t, d.Allowed, "%+v", d)
		require.Equal(t, 6, d.Remaining)
	})
}

// Time to live never lies before the end of what an item holds, a block not excepted.
func TestTimeToLiveOfEveryLimit(t *testing.T) {
	forEveryLimit(t, func(t *testing.T, h stores.Hit) {
		server := dynamotest.New(t)
		s := newStore(t, server.Client())
		tk := newTaking(s, h)
		check := func(what string) {
			t.Helper()
			found := server.Item(t, h.Key)
			seen, ok := tk.read(found)
			require.True(t, ok)
			x, ok := readInteger(found[TTLAttribute])
			require.True(t, ok, what)
			until := seen.End
			if h.Limit.Algorithm == stores.Sliding {
				until += tk.rule.Window
			}
			until = max(until, seen.Block)
			for _, stamp := range allSlots(seen.slots) {
				until = max(until, stamp+tk.rule.Window)
			}
			require.GreaterOrEqual(t, x, until/int64(time.Second/tk.unit)+ttlDelay, what)
			require.LessOrEqual(t, x, time.Now().Add(4*time.Hour).Unix()+ttlDelay, what)
		}
		steps := []func(){
			func() { take(t, s, h) },
			func() { takeOwing(t, s, h, 2, 30*time.Minute) },
			func() { take(t, s, costing(h, 7)) },
			func() { require.NoError(t, s.Refund(t.Context(), costing(h, 4))) },
			func() { takeOwing(t, s, costing(h, 10), 3, 10*time.Minute) },
			func() { time.Sleep(40 * time.Minute); take(t, s, h) },
			func() { time.Sleep(40 * time.Minute); takeOwing(t, s, h, 3, time.Minute) },
			func() { time.Sleep(100 * time.Minute); take(t, s, h) },
		}
		for i, step := range steps {
			step()
			check(fmt.Sprint("step ", i))
		}
	})
}

// allSlots are the stamps that are there.
func allSlots(s *[maxLog]int64) []int64 {
	if s == nil {
		return nil
	}
	return s[:]
}

// Of the call that opens a key it is known what the item shows then. An answer that shows
// anything else is no decision, and the hit may be counted.
func TestLiesAboutANewKey(t *testing.T) {
	forEveryLimit(t, func(t *testing.T, h stores.Hit) {
		for _, name := range []string{countAttribute, endAttribute, olderAttribute, wholeAttribute, slotAttribute} {
			for _, by := range []int64{-1, 1, 1 << 40} {
				server := dynamotest.New(t)
				lied := false
				server.SetFault(dynamotest.Fault{Do: dynamotest.Lie(func(a map[string]any) {
					for found, v := range a {
						if found != name && (name != slotAttribute || found[:1] != name) {
							continue
						}
						var i int64
						_, err := fmt.Sscan(v.(map[string]any)["N"].(string), &i)
						require.NoError(t, err)
						a[found], lied = map[string]any{"N": fmt.Sprint(i + by)}, true
					}
				})})
				d, err := newStore(t, server.Client()).Take(t.Context(), costing(h, 2))
				if !lied {
					require.NoError(t, err)
					continue
				}
				require.Zero(t, d)
				require.ErrorIs(t, err, stores.ErrUnavailable, "%s by %d", name, by)
				require.False(t, asFault(t, err).Definite)
			}
		}
	})
}
