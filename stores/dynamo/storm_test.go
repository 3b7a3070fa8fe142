package dynamo

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
)

// storm hits by many goroutines and ten instances at once and returns how much cost was
// admitted.
func storm(t testing.TB, instances []*Store, hits []stores.Hit) (admitted, refused int) {
	t.Helper()
	decisions, errs := make([]stores.Decision, len(hits)), make([]error, len(hits))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a slow machine is no fault
	defer cancel()
	gate := make(chan struct{})
	var all sync.WaitGroup
	for i, h := range hits {
		all.Go(func() {
			<-gate
			decisions[i], errs[i] = instances[i%len(instances)].Take(ctx, h)
		})
	}
	close(gate)
	all.Wait()
	for i, d := range decisions {
		require.NoError(t, errs[i])
		if d.Allowed {
			admitted += max(hits[i].Cost, 1)
		} else {
			refused++
			require.Positive(t, d.RetryAfter)
		}
	}
	return admitted, refused
}

func repeat(h stores.Hit, n int) []stores.Hit {
	hits := make([]stores.Hit, n)
	for i := range hits {
		hits[i] = h
	}
	return hits
}

func instancesOf(t testing.TB, client Client, n int) []*Store {
	all := make([]*Store, n)
	for i := range all {
		all[i] = newStore(t, client)
	}
	return all
}

// A hundred at once, by ten instances, limit 5: exactly 5 in each round, whether the
// key is new, warm, exhausted or its window is over, and two calls for each at most.
func TestStorm(t *testing.T) {
	server := dynamotest.New(t)
	ten := instancesOf(t, server.Client(), 10)
	for round := range 60 {
		h := hit(fmt.Sprint("k", round), 5, time.Hour)
		if round%2 == 1 {
			server.Put(t, h.Key, item(5, time.Now().Add(-time.Second).UnixMilli())) // full, and over
		}
		server.ResetCalls()
		admitted, refused := storm(t, ten, repeat(h, 100))
		require.Equal(t, []int{5, 95}, []int{admitted, refused})
		require.LessOrEqual(t, server.Calls(""), 200)
		w, _ := stored(t, server, h.Key)
		require.Equal(t, int64(5), w.n)
	}
}

func TestStormOnDynalite(t *testing.T) {
	ten := instancesOf(t, dynamotest.Dynalite(t), 10)
	for round := range 20 {
		admitted, refused := storm(t, ten, repeat(hit(fmt.Sprint("k", round), 5, time.Hour), 100))
		require.Equal(t, []int{5, 95}, []int{admitted, refused})
	}
}

// Mixed costs, resets and refunds at the same time: never more than four calls, no
// error, and what is admitted never exceeds the quota plus what was given back.
func TestStormOfEverything(t *testing.T) {
	server := dynamotest.New(t)
	ten := instancesOf(t, server.Client(), 10)
	for round := range 20 {
		const quota = 50
		h := hit(fmt.Sprint("k", round), quota, time.Hour)
		var givenBack, resets int
		var hits []stores.Hit
		for i := range 100 {
			h.Cost = 1 + i%3
			hits = append(hits, h)
		}
		var meanwhile sync.WaitGroup
		server.ResetCalls()
		h.Cost = 0
		for i := range 10 {
			if round%2 == 0 {
				givenBack++
				meanwhile.Go(func() {
					if err := ten[i].Refund(t.Context(), h); err != nil {
						t.Error(err)
					}
				})
			} else if i == 0 {
				resets++
				meanwhile.Go(func() {
					if err := ten[i].Reset(t.Context(), h); err != nil {
						t.Error(err)
					}
				})
			}
		}
		admitted, _ := storm(t, ten, hits)
		meanwhile.Wait()
		require.LessOrEqual(t, admitted, quota*(1+resets)+givenBack)
		require.GreaterOrEqual(t, admitted, quota-2)
		w, _ := stored(t, server, h.Key)
		require.LessOrEqual(t, w.n, int64(quota))
		require.GreaterOrEqual(t, w.n, int64(0))
		require.LessOrEqual(t, server.Calls("UpdateItem"), 110*maxCalls)
	}
}
