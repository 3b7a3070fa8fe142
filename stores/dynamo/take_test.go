package dynamo

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
)

func take(t testing.TB, s *Store, h stores.Hit) stores.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), h)
	require.NoError(t, err)
	return d
}

// item is what a table holds; attributes that are nil are left out.
func item(n, end any) map[string]types.AttributeValue {
	out := make(map[string]types.AttributeValue)
	for name, v := range map[string]any{countAttribute: n, endAttribute: end} {
		switch v := v.(type) {
		case nil:
		case types.AttributeValue:
			out[name] = v
		default:
			out[name] = &types.AttributeValueMemberN{Value: fmt.Sprint(v)}
		}
	}
	return out
}

// window is what an item says of a fixed window.
type window struct{ n, end int64 }

func readWindow(found map[string]types.AttributeValue) (w window, ok bool) {
	s, ok := newTaking(nil, hit("k", 1, time.Second)).read(found)
	return window{s.N, s.End}, ok && s.there
}

func stored(t testing.TB, server *dynamotest.Server, key string) (w window, there bool) {
	t.Helper()
	found := server.Item(t, key)
	if found == nil {
		return w, false
	}
	w, ok := readWindow(found)
	require.True(t, ok, "%v", found)
	return w, true
}

// What a decision costs is a promise to whoever pays the bill.
func TestCallsPerDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		calls := func(s *Store, h stores.Hit, allowed bool) int {
			t.Helper()
			before := server.Calls("UpdateItem")
			require.Equal(t, allowed, take(t, s, h).Allowed)
			return server.Calls("UpdateItem") - before
		}
		s, h := newStore(t, server.Client()), hit("k", 3, time.Minute)
		require.Equal(t, 1, calls(s, h, true), "new key")
		require.Equal(t, 1, calls(s, h, true), "warm key")
		cold := newStore(t, server.Client())
		require.Equal(t, 2, calls(cold, h, true), "open key, new to this instance")
		require.Equal(t, 1, calls(s, h, false), "refused, warm")
		require.Equal(t, 1, calls(newStore(t, server.Client()), h, false), "refused, new to this instance")

		cold = newStore(t, server.Client())
		require.Equal(t, 1, calls(cold, h, false), "refused, new to this instance")
		raised := h
		raised.Limit.Quota = 4
		require.Equal(t, 1, calls(cold, raised, true), "known from a refusal")

		time.Sleep(time.Minute)
		require.Equal(t, 1, calls(s, h, true), "expired, warm")
		time.Sleep(time.Minute)
		require.Equal(t, 1, calls(newStore(t, server.Client()), h, true), "expired, new to this instance")
		require.Equal(t, 2, calls(s, h, true), "window opened elsewhere")
		require.NoError(t, newStore(t, server.Client()).Reset(t.Context(), h))
		require.Equal(t, 2, calls(s, h, true), "reset elsewhere")

		require.NoError(t, s.Reset(t.Context(), h))
		require.Equal(t, 1, calls(s, h, true), "reset here")

		h.Cost = 4
		require.Zero(t, calls(s, h, false), "a cost above the quota")
		h.Cost = math.MaxInt
		require.Zero(t, calls(s, h, false), "a cost above the quota")
		require.Equal(t, map[string]int{"UpdateItem": server.Calls("UpdateItem"), "DeleteItem": 2}, server.Actions(),
			"to count needs UpdateItem alone")
	})
}

// Exactly the quota passes, Remaining counts down to 0, and refused hits
// leave the item as it was.
func TestExactlyTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		for _, quota := range []int{1, 2, 5, 100} {
			a, b := newStore(t, server.Client()), newStore(t, server.Client())
			h := hit(fmt.Sprint("k", quota), quota, time.Minute)
			for i := range quota {
				d := take(t, a, h)
				require.Equal(t, stores.Decision{Allowed: true, Remaining: quota - 1 - i, ResetAfter: time.Minute}, d)
				a, b = b, a
			}
			before := server.Item(t, h.Key)
			for range 20 {
				time.Sleep(time.Second)
				d := take(t, a, h)
				require.False(t, d.Allowed)
				require.Zero(t, d.Remaining)
				a, b = b, a
			}
			require.Equal(t, before, server.Item(t, h.Key))
			d := take(t, a, h)
			require.Equal(t, 40*time.Second, d.RetryAfter)
			require.Equal(t, 40*time.Second, d.ResetAfter)
		}
	})
}

// Time to live deletes days late and counts in seconds: expired items are
// judged by their end, whatever they count, and the attribute is what the service wants.
func TestExpiredItemsCountForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		s := newStore(t, server.Client())
		twoDaysAgo := time.Now().Add(-48 * time.Hour)
		for i, seeded := range []map[string]types.AttributeValue{
			item(999, twoDaysAgo.UnixMilli()),
			item(999, time.Now().UnixMilli()),
			item(999, nil),
			item(nil, twoDaysAgo.UnixMilli()),
			{TTLAttribute: &types.AttributeValueMemberN{Value: strconv.FormatInt(twoDaysAgo.Unix(), 10)}},
			{},
		} {
			h := hit(fmt.Sprint("k", i), 3, time.Second)
			server.Put(t, h.Key, seeded)
			peeked, err := s.Peek(t.Context(), h)
			if i != 3 {
				require.NoError(t, err)
				require.Equal(t, stores.Decision{Allowed: true, Remaining: 3}, peeked)
			}
			for left := 2; left >= 0; left-- {
				require.Equal(t, left, take(t, s, h).Remaining)
			}
			require.False(t, take(t, s, h).Allowed)

			x, ok := server.Item(t, h.Key)[TTLAttribute].(*types.AttributeValueMemberN)
			require.True(t, ok, "time to live is a Number")
			seconds, err := strconv.ParseInt(x.Value, 10, 64)
			require.NoError(t, err, "in whole seconds")
			end := time.Now().Add(time.Second)
			require.WithinRange(t, time.Unix(seconds, 0), end.Add(time.Hour), end.Add(2*time.Hour))

			time.Sleep(time.Second)
			require.Equal(t, 2, take(t, s, h).Remaining, "the item is still there, and over")
		}
	})
}

func TestQuotaMayChangeWhileTheWindowIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, dynamotest.New(t).Client())
		h := hit("k", 5, time.Minute)
		for range 4 {
			take(t, s, h)
		}
		h.Limit.Quota = 2
		require.Equal(t, stores.Decision{RetryAfter: time.Minute, ResetAfter: time.Minute}, take(t, s, h))
		peeked, err := s.Peek(t.Context(), h)
		require.NoError(t, err)
		require.Equal(t, stores.Decision{RetryAfter: time.Minute, ResetAfter: time.Minute}, peeked)
		h.Limit.Quota = 6
		require.Equal(t, 1, take(t, s, h).Remaining, "refused hits took nothing")
	})
}

// A window ends to the millisecond, and the whole of the quota is back.
func TestWindowEndsToTheMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		for _, window := range []time.Duration{time.Millisecond, 2 * time.Millisecond, 200 * time.Millisecond, 1500 * time.Millisecond, time.Hour, 10 * 365 * 24 * time.Hour} {
			a, b := newStore(t, server.Client()), newStore(t, server.Client())
			time.Sleep(333 * time.Microsecond) // windows open at any moment
			h := hit(window.String(), 2, window)
			require.True(t, take(t, a, h).Allowed)
			require.True(t, take(t, b, h).Allowed)
			for range 5 {
				d := take(t, a, h)
				require.False(t, d.Allowed)
				require.Positive(t, d.RetryAfter)
				require.LessOrEqual(t, d.RetryAfter, window)
				require.Zero(t, d.RetryAfter%time.Millisecond)
				time.Sleep(d.RetryAfter - time.Millisecond)
				require.False(t, take(t, b, h).Allowed, "a millisecond early")
				time.Sleep(time.Millisecond)
				require.True(t, take(t, b, h).Allowed, "as told")
				require.True(t, take(t, a, h).Allowed)
			}
		}
	})
}

// An item that makes no sense is no decision, and certainly no allow; it says
// nothing of other keys.
func TestForeignItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		s := newStore(t, server.Client())
		live := time.Now().Add(time.Minute).UnixMilli()
		text := &types.AttributeValueMemberS{Value: "7"}
		for name, seeded := range map[string]map[string]types.AttributeValue{
			"count is text":     item(text, live),
			"count is missing":  item(nil, live),
			"count is negative": item(-1, live),
			"count is a part":   item("1.5", live),
			"end is text":       item(1, text),
			"end is too large":  item(1, int64(math.MaxInt64)),
		} {
			server.Put(t, name, seeded)
			for method, err := range everyMethod(t, s, hit(name, 5, time.Minute)) {
				if method == "Reset" || method == "Refund" {
					require.NoError(t, err, "it was deleted, and then not there")
					continue
				}
				f := asFault(t, err)
				require.True(t, f.Definite, "%s: %v", name, err)
				if f.Kind == stores.ErrMisconfigured {
					continue // this engine rejects what the service would compare as false
				}
				require.ErrorIs(t, err, stores.ErrUnavailable, "%s: %s", name, method)
				require.True(t, f.KeyOnly, "%s: %v", name, err)
			}
			server.Put(t, name, seeded)
			if err := s.Refund(t.Context(), hit(name, 5, time.Minute)); err != nil {
				require.True(t, asFault(t, err).Definite, name)
			}
		}
	})
}
