package upstash_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

// mixed is a hit on each kind of limit, with a quota of 5.
func mixed(prefix string) (hits []stores.Hit) {
	for _, limit := range append([]stores.Limit{stores.FixedWindow(5, time.Hour)}, others...) {
		hits = append(hits, stores.Hit{Key: prefix + limit.String(), Limit: limit})
	}
	return hits
}

// TestChainIsOneExchange: whatever is in it, in the order of the hits, and behind the
// first refusal nothing is counted.
func TestChainIsOneExchange(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		s := open(t, srv.URL)
		hits := mixed("")
		out := make([]stores.Decision, len(hits))
		n, err := s.TakeAll(t.Context(), hits, out)
		require.NoError(t, err)
		require.Equal(t, len(hits), n)
		require.Equal(t, 2, srv.Requests(), "EVALSHA, and EVAL once")
		srv.Forget()
		for round := 1; round < 5; round++ {
			n, err = s.TakeAll(t.Context(), hits, out)
			require.NoError(t, err)
			require.Equal(t, len(hits), n)
			for i, d := range out {
				require.True(t, d.Allowed, hits[i].Limit)
				require.Equal(t, stores.Shared, d.Source)
				require.Equal(t, 4-round, d.Remaining, hits[i].Limit)
				require.Positive(t, d.ResetAfter)
				require.Equal(t, hits[i].Limit.Algorithm == stores.Leaky, d.Delay > 0)
			}
			require.Equal(t, round, srv.Requests())
		}
		srv.Forget()

		// Each of them ends the chain, and what is behind it is not counted.
		for i := range hits {
			fresh := stores.Hit{Key: fmt.Sprint("fresh ", i), Limit: stores.SlidingWindow(9, time.Hour)}
			n, err = s.TakeAll(t.Context(), []stores.Hit{fresh, hits[i], fresh, fresh}, out)
			require.NoError(t, err)
			require.Equal(t, 2, n)
			require.False(t, out[1].Allowed)
			require.Positive(t, out[1].RetryAfter)
			require.LessOrEqual(t, out[1].RetryAfter, out[1].ResetAfter)
			d, err := s.Peek(t.Context(), fresh)
			require.NoError(t, err)
			require.Equal(t, 8, d.Remaining)
		}
	})
}

// TestChainOfMany: up to 64 hits.
func TestChainOfMany(t *testing.T) {
	srv := upstashtest.New(t)
	s := open(t, srv.URL)
	var hits []stores.Hit
	for i := range 64 {
		key := fmt.Sprint(i) + strings.Repeat("\\", 510)
		hits = append(hits, stores.Hit{Key: key, Limit: mixed("")[i%9].Limit, Cost: 1 + i%5})
	}
	out := make([]stores.Decision, 65)
	n, err := s.TakeAll(t.Context(), hits, out)
	require.NoError(t, err)
	require.Equal(t, 64, n)
	srv.Forget()
	n, err = s.TakeAll(t.Context(), append(hits, hits[0]), out)
	require.ErrorIs(t, err, stores.ErrInvalid)
	require.Zero(t, n)
	n, err = s.TakeAll(t.Context(), nil, nil)
	require.NoError(t, err)
	require.Zero(t, n)
	for _, wrong := range []func() (int, error){
		func() (int, error) { return s.TakeAll(t.Context(), hits, out[:63]) },
		func() (int, error) { return s.TakeChain(t.Context(), hits, make([]bool, 63), nil, nil, out, nil) },
		func() (int, error) { return s.TakeChain(t.Context(), hits, nil, make([]int, 64), nil, out, nil) },
		func() (int, error) {
			return s.TakeChain(t.Context(), hits, nil, make([]int, 63), make([]time.Duration, 64), out, nil)
		},
		func() (int, error) { return s.TakeChain(t.Context(), hits, nil, nil, nil, out, make([]bool, 63)) },
		func() (int, error) {
			return s.TakeChain(t.Context(), hits[:1], nil, []int{-1}, []time.Duration{1}, out, nil)
		},
		func() (int, error) { return s.TakeAll(t.Context(), []stores.Hit{hits[0], {Key: ""}}, out) },
	} {
		n, err = wrong()
		require.ErrorIs(t, err, stores.ErrInvalid)
		require.Zero(t, n)
	}
	require.Zero(t, srv.Requests())
}

// TestChainAsAskedOneByOne: TakeChain is what TakeCertain and TakeOwing are for one hit
// after the other, at one moment. Two databases hear the same, each in its own way.
func TestChainAsAskedOneByOne(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 11))
			opened := func() *upstash.Store {
				srv := upstashtest.NewBubble(t)
				return open(t, srv.URL, func(c *upstash.Config) { c.Transport = srv.Transport() })
			}
			one, all := opened(), opened()
			limits := mixed("")
			for range 150 {
				var (
					many    = 1 + rng.IntN(6)
					hits    = make([]stores.Hit, many)
					goesOn  = make([]bool, many)
					owed    = make([]int, many)
					until   = make([]time.Duration, many)
					out     = make([]stores.Decision, many)
					certain = make([]bool, many)
				)
				for i := range hits {
					out[i], certain[i] = stores.Decision{Allowed: true, Remaining: 99}, true // of an earlier use
					hits[i] = limits[rng.IntN(len(limits))]
					hits[i].Key += fmt.Sprint(rng.IntN(2))
					hits[i].Cost = rng.IntN(4) + rng.IntN(40)/39*3
					goesOn[i] = rng.IntN(3) == 0
					if rng.IntN(4) == 0 {
						owed[i], until[i] = rng.IntN(3), time.Duration(rng.IntN(3600))*time.Second
					}
				}
				n, err := all.TakeChain(t.Context(), hits, goesOn, owed, until, out, certain)
				require.NoError(t, err)
				last := 0
				for i, hit := range hits {
					var want stores.Decision
					sure := certain[i] // TakeOwing does not tell
					if owed[i] > 0 && until[i] > 0 {
						want, err = one.TakeOwing(t.Context(), hit, owed[i], until[i])
					} else {
						want, sure, err = one.TakeCertain(t.Context(), hit)
					}
					require.NoError(t, err)
					// INCR counts hits that it refuses, and knows its window otherwise.
					plain := hit.Limit.Algorithm == stores.Fixed && hit.Limit.Block == 0
					if plain && !want.Allowed && hit.Cost <= 1 {
						want.RetryAfter, want.ResetAfter, sure = out[i].RetryAfter, out[i].ResetAfter, certain[i]
					}
					require.Equal(t, want, out[i], "%d of %v", i, hits)
					require.Equal(t, sure, certain[i])
					if last = i + 1; !want.Allowed && !goesOn[i] {
						break
					}
				}
				require.Equal(t, last, n)
				time.Sleep(time.Duration(rng.IntN(900)) * time.Second)
			}
		})
	}
}

// TestChainHasNoKeyAtOneHit: a key that something else uses ends the chain with its
// error. What is before it is decided and stays counted, and what is behind it is not.
func TestChainHasNoKeyAtOneHit(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		s := open(t, srv.URL)
		for i, bad := range mixed("bad ") {
			_, err := srv.Do("RPUSH", bad.Key, "x")
			require.NoError(t, err)
			before := mixed(fmt.Sprint("before ", i))
			behind := stores.Hit{Key: fmt.Sprint("behind ", i), Limit: five.Limit}
			hits := append(append(append([]stores.Hit(nil), before...), bad), behind)
			out := make([]stores.Decision, len(hits))
			for round := range 2 {
				n, err := s.TakeAll(t.Context(), hits, out)
				ofKey.check(t, err)
				require.Equal(t, len(before), n)
				for _, d := range out[:n] {
					require.True(t, d.Allowed)
					require.Equal(t, 4-round, d.Remaining)
				}
			}
			d, err := s.Peek(t.Context(), behind)
			require.NoError(t, err)
			require.Equal(t, 5, d.Remaining)
			n, err := s.TakeAll(t.Context(), hits[len(before):], out)
			ofKey.check(t, err)
			require.Zero(t, n)
		}
	})
}

// TestChainInParallel: a hundred at once want all of nine limits of one key, through ten
// instances. Exactly the quota passes, of each limit.
func TestChainInParallel(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		var instances [10]*upstash.Store
		for i := range instances {
			instances[i] = open(t, srv.URL)
		}
		hits := mixed("")
		var passed, touched atomic.Int64
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				out := make([]stores.Decision, len(hits))
				n, err := instances[i%10].TakeAll(t.Context(), hits, out)
				if err != nil {
					t.Error(err)
				}
				touched.Add(int64(n))
				if n == len(hits) && out[n-1].Allowed {
					passed.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 5, passed.Load())
		require.EqualValues(t, 5*len(hits)+95, touched.Load(), "the first limit refuses all others")
	})
}

// TestChainKnowsWindows: a chain teaches the ends of windows to the pipeline, and notices
// as it does if a counter went backwards.
func TestChainKnowsWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		srv := upstashtest.NewBubble(t)
		s := open(t, srv.URL, logTo(&log), func(c *upstash.Config) { c.Transport = srv.Transport() })
		out := make([]stores.Decision, 2)
		hits := []stores.Hit{{Key: "k", Limit: stores.FixedWindow(9, time.Hour)}, {Key: "s", Limit: stores.SlidingWindow(9, time.Hour)}}
		for i := range 3 {
			_, err := s.TakeAll(t.Context(), hits, out)
			require.NoError(t, err)
			srv.Forget()
			d, err := s.Take(t.Context(), hits[0])
			require.NoError(t, err)
			require.Equal(t, 7-2*i, d.Remaining)
			require.Equal(t, []string{"INCR", "PEXPIRE"}, names(srv))
		}
		require.Empty(t, log.String())
		time.Sleep(time.Minute)
		_, err := srv.Do("DEL", "k")
		require.NoError(t, err)
		_, err = s.TakeAll(t.Context(), hits, out)
		require.NoError(t, err)
		require.Equal(t, 8, out[0].Remaining)
		require.Equal(t, 1, strings.Count(log.String(), "went backwards"), log.String())
	})
}
