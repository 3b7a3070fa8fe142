package dynamo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

func takeOwing(t testing.TB, s *Store, h stores.Hit, owed int, until time.Duration) stores.Decision {
	t.Helper()
	d, err := s.TakeOwing(t.Context(), h, owed, until)
	require.NoError(t, err)
	return d
}

func costing(h stores.Hit, cost int) stores.Hit {
	h.Cost = cost
	return h
}

// counter counts the updates that pass through it.
type counter struct {
	*dynamodb.Client
	updates atomic.Int64
}

func (c *counter) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	c.updates.Add(1)
	return c.Client.UpdateItem(ctx, in, optFns...)
}

func (c *counter) put(t testing.TB, key string, attributes map[string]types.AttributeValue) {
	t.Helper()
	attributes[KeyAttribute] = &types.AttributeValueMemberS{Value: key}
	_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(dynamotest.Table), Item: attributes})
	require.NoError(t, err)
}

func (c *counter) window(t testing.TB, key string) window {
	t.Helper()
	out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(dynamotest.Table), ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{KeyAttribute: &types.AttributeValueMemberS{Value: key}},
	})
	require.NoError(t, err)
	w, ok := readWindow(out.Item)
	require.True(t, ok, "%v", out.Item)
	return w
}

const none = -1 // no window is there

// owingCases are all the ways a payment and a hit can meet a window of quota 10.
var owingCases = []struct {
	name       string
	n          int // in the window before
	over       bool
	owed, cost int
	allowed    bool
	want       int64 // in the window after
	cold, warm int   // calls, without and with the window's end known
}{
	{"both fit", 2, false, 3, 2, true, 7, 2, 1},
	{"both fit exactly", 5, false, 3, 2, true, 10, 2, 1},
	{"the hit does not", 6, false, 3, 2, false, 9, 2, 2},
	{"the payment fits exactly", 7, false, 3, 1, false, 10, 2, 2},
	{"a part of the payment fits", 8, false, 3, 1, false, 10, 2, 2},
	{"the least part of it", 9, false, 10, 1, false, 10, 2, 1},
	{"full", 10, false, 3, 1, false, 10, 1, 1},
	{"above a quota that was lowered", 15, false, 3, 1, false, 15, 1, 1},
	{"nothing used, the whole quota owed", 0, false, 10, 1, false, 10, 2, 2},
	{"one used, and with the hit one too many", 1, false, 8, 2, false, 9, 2, 1},
	{"more owed than the quota", 4, false, 11, 1, false, 10, 2, 1},
	{"the largest debt", 4, false, math.MaxInt, 1, false, 10, 2, 1},
	{"a cost above the quota", 4, false, 3, 11, false, 7, 2, 1},
	{"the largest cost", 4, false, 3, math.MaxInt, false, 7, 2, 1},
	{"the largest of both", 4, false, math.MaxInt, math.MaxInt, false, 10, 2, 1},

	{"new key", none, false, 3, 2, true, 5, 1, 2},
	{"new key, all of it", none, false, 8, 2, true, 10, 1, 2},
	{"new key, no room for the hit", none, false, 9, 2, false, 9, 1, 2},
	{"new key, saturated", none, false, 99, 1, false, 10, 1, 2},
	{"new key, a cost above the quota", none, false, 3, 11, false, 3, 1, 2},
	{"over", 9, true, 3, 2, true, 5, 1, 2},
	{"over, no room for the hit", 9, true, 9, 2, false, 9, 1, 2},
	{"over, and full", 10, true, 10, 1, false, 10, 1, 2},
}

// Each branch: what is decided, what is written, and what it costs.
func TestTakeOwing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		testTakeOwing(t, dynamotest.New(t).Client())
	})
}

func TestTakeOwingOnDynalite(t *testing.T) {
	testTakeOwing(t, dynamotest.Dynalite(t))
}

func testTakeOwing(t *testing.T, client *dynamodb.Client) {
	const window, until = time.Hour, 20 * time.Minute
	for i, tt := range owingCases {
		for _, warm := range []bool{false, true} {
			name := fmt.Sprintf("%s, warm %v", tt.name, warm)
			c := &counter{Client: client}
			s, h := newStore(t, c), costing(hit(fmt.Sprint("k", i, warm), 10, window), tt.cost)
			end := time.Now().Add(40 * time.Minute).UnixMilli()
			if tt.over {
				end = time.Now().UnixMilli()
			}
			if tt.n != none {
				c.put(t, h.Key, item(tt.n, end))
			}
			calls := tt.cold
			if warm {
				s.hints.learn(h.Key, time.Now().Add(40*time.Minute).UnixMilli(), hint{n: 1})
				calls = tt.warm
			}
			low := time.Now().UnixMilli()
			d := takeOwing(t, s, h, tt.owed, until)
			high := time.Now().UnixMilli()

			require.Equal(t, tt.allowed, d.Allowed, name)
			require.Equal(t, int64(calls), c.updates.Load(), "calls: %s", name)
			w := c.window(t, h.Key)
			require.Equal(t, tt.want, w.n, name)
			require.Equal(t, int(max(0, 10-tt.want)), d.Remaining, name)
			if tt.n == none || tt.over {
				require.GreaterOrEqual(t, w.end, low+until.Milliseconds(), name)
				require.LessOrEqual(t, w.end, high+until.Milliseconds(), name)
				require.Equal(t, until, d.ResetAfter, name)
			} else {
				require.Equal(t, end, w.end, "no payment moves an end: %s", name)
				require.LessOrEqual(t, d.ResetAfter, 40*time.Minute, name)
				require.Greater(t, d.ResetAfter, 39*time.Minute, name)
			}
			switch {
			case tt.allowed, tt.cost > 10:
				require.Zero(t, d.RetryAfter, name)
			default:
				require.Equal(t, d.ResetAfter, d.RetryAfter, name)
			}

			// What follows is warm, whatever it was before.
			c.updates.Store(0)
			require.Equal(t, tt.want < 10, take(t, s, costing(h, 1)).Allowed, name)
			require.Equal(t, int64(1), c.updates.Load(), name)
		}
	}
}

// Nothing owed is a hit and no more.
func TestTakeOwingNothingIsTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		s, h := newStore(t, server.Client()), hit("k", 2, time.Minute)
		require.Equal(t, stores.Decision{Allowed: true, Remaining: 1, ResetAfter: time.Minute}, takeOwing(t, s, h, 0, time.Second))
		require.Equal(t, stores.Decision{Allowed: true, ResetAfter: time.Minute}, takeOwing(t, s, h, 3, 0))
		require.Equal(t, stores.Decision{RetryAfter: time.Minute, ResetAfter: time.Minute}, takeOwing(t, s, h, 0, 0))
		require.Zero(t, takeOwing(t, s, costing(h, 3), 0, time.Minute))
		require.Equal(t, 3, server.Calls(""))
	})
}

func TestTakeOwingOutOfBoundsMakesNoCall(t *testing.T) {
	server := dynamotest.New(t)
	s, h := newStore(t, server.Client()), hit("k", 2, time.Minute)
	for _, debt := range []struct {
		owed  int
		until time.Duration
	}{{-1, time.Second}, {math.MinInt, time.Second}, {1, -1}, {1, time.Minute + 1}, {1, math.MaxInt64}, {0, -1}, {-1, 0}} {
		d, err := s.TakeOwing(t.Context(), h, debt.owed, debt.until)
		require.ErrorIs(t, err, stores.ErrInvalid, "%v", debt)
		require.Zero(t, d)
	}
	require.Empty(t, server.Actions())
}

// The store says what memory says, whatever comes in whatever order: a twin that
// is a few lines long, over ten instances' worth of stale knowledge.
func TestTakeOwingLikeMemory(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			server := dynamotest.New(t)
			twin, err := memory.New(memory.Config{})
			require.NoError(t, err)
			instances := instancesOf(t, server.Client(), 3)
			quota := 1 + rng.IntN(8)
			window := time.Duration(1+rng.IntN(3000)) * time.Millisecond
			for step := range 300 {
				s := instances[rng.IntN(len(instances))]
				h := costing(hit(fmt.Sprint("k", rng.IntN(2)), quota, window), 1+rng.IntN(min(quota, 3)))
				var got, want stores.Decision
				var gotErr, wantErr error
				before := server.Calls("UpdateItem")
				what := rng.IntN(10)
				owed, until := rng.IntN(2*quota), time.Duration(rng.IntN(int(window.Milliseconds())+1))*time.Millisecond
				if until == 0 {
					owed = 0 // a debt that ends at once is none here
				}
				switch {
				case what < 4:
					if owed > 0 && rng.IntN(8) == 0 {
						h.Cost += quota
					}
					got, gotErr = s.TakeOwing(t.Context(), h, owed, until)
					want, wantErr = twin.TakeOwing(t.Context(), h, owed, until)
				case what < 8:
					got, gotErr = s.Take(t.Context(), h)
					want, wantErr = twin.Take(t.Context(), h)
				case what < 9:
					gotErr, wantErr = s.Refund(t.Context(), h), twin.Refund(t.Context(), h)
				default:
					if rng.IntN(5) == 0 {
						gotErr, wantErr = s.Reset(t.Context(), h), twin.Reset(t.Context(), h)
					}
				}
				require.NoError(t, gotErr)
				require.NoError(t, wantErr)
				want.Source = stores.Shared
				require.Equal(t, want, got, "seed %d step %d: %v owed %d until %v", seed, step, h, owed, until)
				require.LessOrEqual(t, server.Calls("UpdateItem")-before, 2, "nobody interferes: two calls are enough")
				time.Sleep(time.Duration(rng.IntN(int(window.Milliseconds())/4+2)) * time.Millisecond)
			}
		})
	}
}
