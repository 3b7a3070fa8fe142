package dynamo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
)

// A hundred at once, by ten instances, for every kind of limit, with a block and
// without: exactly the quota passes, whether the key is new, or over, or a part of it is
// used already.
func TestStormOfEveryLimit(t *testing.T) {
	server := dynamotest.New(t)
	rounds := 8
	if RaceDetector {
		rounds = 2
	}
	testStormOfEveryLimit(t, server.Client(), rounds, func(limit stores.Limit) {
		calls := server.Calls("")
		server.ResetCalls()
		most := 100 * 3 // two, and one that starts a block or finds it
		if limit.Algorithm == stores.Log {
			most = 100 * maxLogCalls
		}
		require.LessOrEqual(t, calls, most, limit.String())
		t.Logf("%v: %.2f calls for each of a hundred at once", limit, float64(calls)/100)
	})
}

func TestStormOfEveryLimitOnDynalite(t *testing.T) {
	testStormOfEveryLimit(t, dynamotest.Dynalite(t), 2, func(stores.Limit) {})
}

func testStormOfEveryLimit(t *testing.T, client Client, rounds int, after func(stores.Limit)) {
	ten := instancesOf(t, client, 10)
	for round := range rounds {
		for _, quota := range []int{1, 5, 60, 100} {
			for _, limit := range everyLimit(quota, time.Hour) {
				used := 0
				if round%2 == 1 {
					limit = limit.BlockFor(2 * time.Hour)
				}
				h := stores.Hit{Key: fmt.Sprint(round, limit), Limit: limit}
				if round%4 >= 2 && quota > 1 {
					used = quota / 2
					require.True(t, take(t, ten[round%10], costing(h, used)).Allowed)
				}
				admitted, refused := storm(t, ten, repeat(h, 100))
				require.Equal(t, []int{quota - used, 100 - quota + used}, []int{admitted, refused}, "%v, %d used", limit, used)
				after(limit)
			}
		}
	}
}

// slowly lets every call take its own time there and back, so that whoever is on its
// way at once has seen something else when it writes.
func slowly(seed uint64, most time.Duration) dynamotest.Fault {
	rng := rand.New(rand.NewPCG(seed, 3))
	var mu sync.Mutex
	return dynamotest.Fault{Do: func(ctx context.Context, apply func() dynamotest.Reply) (dynamotest.Reply, error) {
		mu.Lock()
		there, back := time.Duration(rng.Int64N(int64(most))), time.Duration(rng.Int64N(int64(most)))
		mu.Unlock()
		time.Sleep(there)
		reply := apply()
		time.Sleep(back)
		return reply, nil
	}}
}

// The same over slow networks, and at one and the same microsecond, when stamps are
// equal.
func TestStormOverSlowNetworks(t *testing.T) {
	seeds := uint64(8)
	if RaceDetector {
		seeds = 2
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			server := dynamotest.New(t)
			if seed > 0 {
				server.SetFault(slowly(seed, 100*time.Millisecond))
			}
			calls := make(map[string]float64)
			testStormOfEveryLimit(t, server.Client(), 2, func(limit stores.Limit) {
				calls[limit.String()] = float64(server.Calls("")) / 100
				server.ResetCalls()
			})
			t.Logf("calls for each of a hundred at once: %v", calls)
		})
	}
}

// Many that give back at once all do, and nobody finds the item changed too often.
func TestParallelRefunds(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			server := dynamotest.New(t)
			ten := instancesOf(t, server.Client(), 10)
			for _, limit := range everyLimit(40, time.Hour) {
				h := stores.Hit{Key: limit.String(), Limit: limit}
				for range 40 { // at forty moments, so that a log has a newest stamp that all want to give back
					require.True(t, take(t, ten[0], h).Allowed)
					time.Sleep(time.Microsecond)
				}
				server.SetFault(slowly(seed, 50*time.Millisecond))
				var all sync.WaitGroup
				for i := range 30 {
					all.Go(func() {
						if err := ten[i%10].Refund(t.Context(), h); err != nil {
							t.Errorf("%v: %v", limit, err)
						}
					})
				}
				all.Wait()
				server.ClearFaults()
				d, err := ten[0].Peek(t.Context(), h)
				require.NoError(t, err)
				require.Equal(t, 30, d.Remaining, limit.String())
			}
		})
	}
}

// The same when what filled the key is over.
func TestStormWhenItIsOver(t *testing.T) {
	server := dynamotest.New(t)
	ten := instancesOf(t, server.Client(), 10)
	for _, limit := range everyLimit(5, 50*time.Millisecond) {
		h := stores.Hit{Key: limit.String(), Limit: limit}
		require.True(t, take(t, ten[0], costing(h, 5)).Allowed)
		h.Limit.Window = time.Hour // a window this long would be another key; here it keeps the machine's pace out
		if limit.Algorithm == stores.Log || limit.Algorithm == stores.Sliding {
			server.Put(t, h.Key, nil)
		}
		require.Eventually(t, func() bool {
			d, err := ten[1].Peek(t.Context(), costing(h, 5))
			return err == nil && d.Allowed
		}, 10*time.Second, time.Millisecond)
		admitted, _ := storm(t, ten, repeat(h, 100))
		require.Equal(t, 5, admitted, limit.String())
	}
}

// A quota that was lowered while more is used: nobody gets in until the level is
// below it, and racers don't get past it between them.
func TestStormUnderALoweredQuota(t *testing.T) {
	server := dynamotest.New(t)
	ten := instancesOf(t, server.Client(), 10)
	for round := range 10 {
		for _, limit := range everyLimit(20, time.Hour) {
			h := stores.Hit{Key: fmt.Sprint(round, limit), Limit: limit}
			require.True(t, take(t, ten[0], costing(h, 12)).Allowed)
			require.NoError(t, ten[0].Refund(t.Context(), costing(h, 1+round)))
			h.Limit.Quota = 10
			room := max(0, 10-12+1+round)
			if limit.Algorithm == stores.Token || limit.Algorithm == stores.Leaky {
				room = (20 - 12 + 1 + round) / 2 // a bucket keeps the share of it that is full
			}
			admitted, _ := storm(t, ten, repeat(h, 60))
			require.Equal(t, min(room, 10), admitted, "%v, round %d", limit, round)
		}
	}
}

// Hits of all costs, payments, refunds and resets of every kind of limit at once: no
// error but the one that says that nothing was done, and no level above the quota.
func TestEverythingAtOnceForEveryLimit(t *testing.T) {
	server := dynamotest.New(t)
	ten := instancesOf(t, server.Client(), 10)
	for round := range 4 {
		for _, limit := range everyLimit(30, time.Hour) {
			h := stores.Hit{Key: fmt.Sprint(round, limit), Limit: limit}
			var all sync.WaitGroup
			for i := range 60 {
				s := ten[i%10]
				all.Go(func() {
					var d stores.Decision
					var err error
					switch {
					case i%6 == 0:
						err = s.Refund(t.Context(), costing(h, 1+i%3))
					case i == 31:
						err = s.Reset(t.Context(), h)
					case i%3 == 1:
						d, err = s.TakeOwing(t.Context(), costing(h, 1+i%2), 1+i%5, time.Minute)
					default:
						d, err = s.Take(t.Context(), costing(h, 1+i%4))
					}
					if err != nil && !asFault(t, err).Definite || d.Remaining < 0 || d.Remaining > 30 {
						t.Errorf("%v: %v, %v", limit, d, err)
					}
				})
			}
			all.Wait()
			tk := newTaking(ten[0], h)
			s, ok := tk.read(server.Item(t, h.Key))
			require.True(t, ok)
			now := tk.now(time.Now())
			if limit.Algorithm == stores.Log {
				require.LessOrEqual(t, len(tk.stamps(&s, now)), 30)
				continue
			}
			require.LessOrEqual(t, tk.rule.Used(s.State, now), int64(30), limit.String())
		}
	}
}
