package handler

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// Exactly the quota passes, and what remains counts down to 0 and stays there.
func TestExactlyTheQuota(t *testing.T) {
	for _, quota := range []int{1, 2, 5, 100} {
		bothPaths(t, func(t *testing.T, store stores.Store) {
			h := guardOf(t, Config{Store: store, Policies: []Policy{byIP("p", quota)}}).Handler(ok)
			for i := range quota + 3 {
				w := serve(h, get(client))
				require.Equal(t, i < quota, w.Code == http.StatusOK, "request %d of %d", i+1, quota)
				_, state := readField(t, w.Header()["Ratelimit"])
				require.EqualValues(t, max(0, quota-1-i), state["p"]["r"])
			}
		})
	}
}

// One script has one outcome on memory alone, on a shared store, and on the
// fallback of one that is down: the same requests pass, refused ones cost nothing, and
// the answers have the same numbers, with three rules, costs, plans and windows that end.
func TestSameOnEveryPath(t *testing.T) {
	run := func(t *testing.T, store func(t *testing.T) stores.Store) (answers []string) {
		synctest.Test(t, func(t *testing.T) {
			plan := byIP("plan", 6)
			plan.Cost = func(r *http.Request) int { return len(r.Header.Get("Cost")) }
			plan.LimitBy = func(r *http.Request) stores.Limit {
				if r.Header.Get("Plan") != "" {
					return stores.FixedWindow(9, 10*time.Minute)
				}
				return stores.Limit{}
			}
			short := guardOf(t, Config{Store: store(t), Policies: []Policy{{Name: "short", Limit: stores.FixedWindow(3, 10*time.Second), Key: ByIP()}}})
			planned, err := short.With(plan)
			require.NoError(t, err)
			everyone, err := short.With(Policy{Name: "everyone", Limit: stores.FixedWindow(14, time.Hour), Key: Everyone(), ShowQuota: true})
			require.NoError(t, err)
			for i := range 120 {
				headers := [][]string{nil, {"Cost", "xx"}, {"Plan", "big"}, {"Cost", "xxxxxxx"}, nil, {"Cost", "xxxx"}, nil}[i%7]
				w := serve([]*Guard{short, planned, everyone}[i%3].Handler(ok), get([]string{client, another}[i/3%2], headers...))
				answers = append(answers, fmt.Sprint(i, w.Code, w.Header()["Ratelimit"], w.Header()["Ratelimit-Policy"], w.Header()["Retry-After"]))
				time.Sleep([]time.Duration{0, time.Second, 0, 3 * time.Second, 0}[i%5])
			}
		})
		return answers
	}
	alone := run(t, func(t *testing.T) stores.Store {
		m, err := memory.New(memory.Config{})
		require.NoError(t, err)
		return m
	})
	for name, fail := range map[string]func(context.Context, stores.Hit) error{"healthy": nil, "down": down} {
		shared := run(t, func(t *testing.T) stores.Store {
			s := newSharedStore(t)
			s.fail = fail
			return s
		})
		for i := range alone {
			require.Equal(t, alone[i], shared[i], name)
		}
	}
}

// A cost above the quota is refused without a look at the counter: the fields don't say
// that nothing remains, or that all is back in 0 seconds.
func TestHopelessShowsNoState(t *testing.T) {
	bothPaths(t, func(t *testing.T, store stores.Store) {
		for style, names := range map[HeaderStyle][2]string{HeadersDraft8: {"RateLimit", "RateLimit-Policy"}, HeadersLegacy: {"X-RateLimit-Remaining", ""}} {
			big := byIP(fmt.Sprint("big", style), 5)
			big.Cost = func(r *http.Request) int { return len(r.Header.Get("Cost")) }
			g := guardOf(t, Config{Store: store, Headers: style, Policies: []Policy{byIP(fmt.Sprint("first", style), 9), big}})
			w := serve(g.Handler(ok), get(client, "Cost", "xxxxxx"))
			require.Equal(t, http.StatusTooManyRequests, w.Code)
			require.Empty(t, w.Header().Values("Retry-After"))
			if style == HeadersDraft8 {
				require.Equal(t, []string{`"first0";r=8;t=600`}, w.Header().Values(names[0]))
				require.Equal(t, []string{`"first0";q=9;w=600, "big0";q=5;w=600`}, w.Header().Values(names[1]))
			} else {
				require.Empty(t, w.Header().Values(names[0]))
			}
			require.True(t, g.Check(get(client, "Cost", "xxxxx")).Allowed, "it cost nothing")
		}
	})
}
