package dynamo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
)

// What an instance believes chooses the first call and decides nothing: with hints that
// are forged anew before each hit exactly the quota passes.
func TestForgedHints(t *testing.T) {
	forEveryLimit(t, func(t *testing.T, h stores.Hit) {
		rng := rand.New(rand.NewPCG(5, 6))
		server := dynamotest.New(t)
		s := newStore(t, server.Client())
		for round := range 10 {
			h.Key = fmt.Sprint("k", round)
			admitted := 0
			for range 25 {
				now := newTaking(s, h).now(time.Now())
				span := newTaking(s, h).longest()
				forged := hint{n: rng.Int64N(20) - 3, p: rng.Int64N(20) - 3, taken: [2]uint64{rng.Uint64(), rng.Uint64()}}
				switch rng.IntN(4) {
				case 0:
					forged.n, forged.p = now+rng.Int64N(span), rng.Int64N(2*maxLog)-maxLog/2
				case 1:
					forged.n, forged.p = maxExact/newTaking(s, h).rule.Window, maxExact/newTaking(s, h).rule.Window
				}
				s.hints.learn(h.Key, now+rng.Int64N(2*span)-span, forged)
				server.ResetCalls()
				if take(t, s, h).Allowed {
					admitted++
				}
				require.LessOrEqual(t, server.Calls(""), 3)
			}
			require.Equal(t, 10, admitted)
		}
	})
}

// The largest numbers that a caller can bring overflow nothing: such a hit is refused,
// and what is owed is paid up to the quota.
func TestLargestCosts(t *testing.T) {
	forEveryLimit(t, func(t *testing.T, h stores.Hit) {
		server := dynamotest.New(t)
		for i, cost := range []int{11, 1 << 31, 1 << 53, math.MaxInt - 1, math.MaxInt} {
			for j, owed := range []int{0, 3, math.MaxInt} {
				h.Key = fmt.Sprint("k", i, j)
				for range 2 {
					d := takeOwing(t, newStore(t, server.Client()), costing(h, cost), owed, time.Hour)
					require.False(t, d.Allowed, "%d", cost)
					require.Zero(t, d.RetryAfter)
					require.NoError(t, newStore(t, server.Client()).Refund(t.Context(), costing(h, cost)))
					require.Zero(t, level(t, server, h))
				}
				takeOwing(t, newStore(t, server.Client()), costing(h, cost), owed, time.Hour)
				require.Equal(t, min(owed, 10), level(t, server, h))
			}
		}
	})
}

// Under the key lies what no Store wrote: text where a number belongs, numbers beyond all
// bounds, parts of an item. Nobody gets more than the quota for it, nothing panics, and
// an error says whether anything was counted.
func TestOddItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		testOddItems(t, server.Client())
	})
}

func TestOddItemsOnDynalite(t *testing.T) { testOddItems(t, dynamotest.Dynalite(t)) }

func testOddItems(t *testing.T, client *dynamodb.Client) {
	put := &counter{Client: client}
	num := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	odd := []types.AttributeValue{
		&types.AttributeValueMemberS{Value: "7"},
		&types.AttributeValueMemberNULL{Value: true},
		&types.AttributeValueMemberB{Value: []byte{1}},
		&types.AttributeValueMemberNS{Value: []string{"1", "2"}},
		&types.AttributeValueMemberL{Value: []types.AttributeValue{num("1")}},
		num("0"), num("-1"), num("1.5"), num("1e100"), num("-1e100"), num("9007199254740991"), num("9007199254740992"), num("99999999999999999999999999999999999999"),
		nil,
	}
	n := 0
	for _, base := range everyLimit(5, time.Hour) {
		limit := base.BlockFor(2 * time.Hour)
		now := newTaking(nil, stores.Hit{Key: "k", Limit: limit})
		ahead := func(d time.Duration) types.AttributeValue { return number(unitsOf(now, time.Now().Add(d))) }
		good := map[string]types.AttributeValue{
			countAttribute: num("2"), endAttribute: ahead(time.Minute), olderAttribute: num("1"), wholeAttribute: ahead(time.Minute),
			topAttribute: num("5"), "s0": ahead(0), "s3": ahead(-time.Minute), blockAttribute: ahead(-time.Minute), TTLAttribute: num("1"),
		}
		for _, name := range []string{countAttribute, endAttribute, olderAttribute, wholeAttribute, topAttribute, "s0", "s3", "s4", blockAttribute} {
			for _, value := range odd {
				n++
				key := fmt.Sprint("k", n)
				item := make(map[string]types.AttributeValue)
				for name, v := range good {
					item[name] = v
				}
				if item[name] = value; value == nil {
					delete(item, name)
				}
				put.put(t, key, item)
				what := fmt.Sprintf("%v: %s is %#v", limit, name, value)
				admitted := 0
				one, other := newStore(t, client), newStore(t, client)
				for i := range 8 {
					d, err := one.Take(t.Context(), stores.Hit{Key: key, Limit: limit})
					one, other = other, one
					if err != nil {
						// A log's claim names the slots that it takes, and finds the odd one afterwards.
						require.True(t, asFault(t, err).Definite || limit.Algorithm == stores.Log, "%s: %v", what, err)
						require.Zero(t, d)
					}
					require.True(t, d.Remaining >= 0 && d.Remaining < 5 && d.RetryAfter >= 0 && d.ResetAfter <= 2*time.Hour, "%s: %+v", what, d)
					if d.Allowed {
						admitted++
					}
					if i == 3 {
						_, err := one.Peek(t.Context(), stores.Hit{Key: key, Limit: limit})
						require.True(t, err == nil || asFault(t, err).Definite, what)
						if err := one.Refund(t.Context(), stores.Hit{Key: key, Limit: limit}); err == nil {
							admitted--
						}
					}
				}
				require.LessOrEqual(t, admitted, 5, what)
			}
		}
	}
}

// What a clock far ahead left behind would shut a client out for days. It is put where it
// would be if it had been written now, with what is counted kept; and without a Date
// header, when it can't be known whose clock is wrong, nothing moves.
func TestFarAheadIsMended(t *testing.T) {
	forEveryLimit(t, func(t *testing.T, h stores.Hit) {
		server := dynamotest.New(t)
		// An instance whose clock is two days ahead and that no Date header corrects.
		server.SetFault(dynamotest.Fault{Do: dynamotest.NoDate()})
		wrong, _ := offsetStore(t, server, 48*time.Hour)
		require.True(t, take(t, wrong, costing(h, 10)).Allowed)
		if h.Limit.Block > 0 {
			require.False(t, take(t, wrong, h).Allowed)
		}
		before := server.Item(t, h.Key)
		s := newStore(t, server.Client())
		longest := newTaking(s, h)
		most := longest.wait(max(longest.longest(), longest.rule.Block))
		for range 3 {
			d := take(t, s, h)
			require.False(t, d.Allowed)
			require.LessOrEqual(t, d.RetryAfter, most)
		}
		require.Equal(t, before, server.Item(t, h.Key), "it can't be known whose clock is wrong")

		server.ClearFaults()
		server.ResetCalls()
		d := take(t, s, h)
		require.False(t, d.Allowed)
		require.LessOrEqual(t, d.RetryAfter, most)
		require.LessOrEqual(t, server.Calls(""), 3)
		require.NotEqual(t, before, server.Item(t, h.Key))
		for range 3 {
			require.False(t, take(t, newStore(t, server.Client()), h).Allowed, "what is counted stays")
		}
		time.Sleep(d.RetryAfter - time.Millisecond)
		require.False(t, take(t, s, h).Allowed)
		for range 3 {
			time.Sleep(time.Second)
			if d = take(t, s, h); d.Allowed {
				break
			}
			time.Sleep(d.RetryAfter) // the block and what is below it end one after the other
		}
		require.True(t, d.Allowed, "waiting as told works: %+v", d)
	})
}

func unitsOf(t *taking, at time.Time) int64 {
	if t.unit == time.Millisecond {
		return at.UnixMilli()
	}
	return at.UnixMicro()
}
