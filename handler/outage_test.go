package handler

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
	"github.com/sallyport/sallyport/stores/memory"
)

// An outage is no free pass, no 500 and no riddle.
func TestOutageFallsBack(t *testing.T) {
	for name, fail := range map[string]func(context.Context, stores.Hit) error{
		"refused": down,
		"hangs":   blackHole,
		"strange": func(context.Context, stores.Hit) error { return errStrange },
		"throttled": func(context.Context, stores.Hit) error {
			return &fault.Error{Kind: stores.ErrThrottled, Text: "too many requests", Definite: true}
		},
		"no rights": func(context.Context, stores.Hit) error {
			return &fault.Error{Kind: stores.ErrMisconfigured, Text: "no rights", Definite: true, Lasting: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, log := newSharedStore(t), new(logBuffer)
				store.fail = fail
				g := guardOf(t, Config{Store: store, Policies: []Policy{byIP("p", 5)}, Logger: log.logger(), KeySecret: []byte("a secret of tests")})
				h := g.Handler(ok)
				passed := 0
				for range 20 {
					w := serve(h, get(client))
					if w.Code == http.StatusOK {
						passed++
						require.Equal(t, "fine", w.Body.String())
						continue
					}
					require.Equal(t, http.StatusTooManyRequests, w.Code)
					requireSane(t, w.Header(), w.Body.Bytes(), 600)
				}
				require.Equal(t, 5, passed)
				require.Equal(t, http.StatusOK, serve(h, get(another)).Code)
				require.Contains(t, log.String(), "level", "an operator sees it")
				require.Less(t, log.lines(), 5)
			})
		})
	}
}

// requireSane checks the numbers of a 429 against each other.
func requireSane(t *testing.T, h http.Header, body []byte, most int) {
	t.Helper()
	wait, err := strconv.Atoi(h.Get("Retry-After"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, wait, 1)
	require.LessOrEqual(t, wait, most)
	var problem struct {
		Status     int
		RetryAfter int `json:"retry_after"`
	}
	require.NoError(t, json.Unmarshal(body, &problem), string(body))
	require.Equal(t, wait, problem.RetryAfter)
	if state := h.Get("RateLimit"); state != "" {
		require.Contains(t, state, ";t="+strconv.Itoa(wait))
	}
}

func TestOutageAllowShowsNoNumbers(t *testing.T) {
	store := newSharedStore(t)
	store.fail = down
	p := byIP("p", 1)
	p.Outage = stores.OutageAllow
	g := guardOf(t, Config{Store: store, Policies: []Policy{p}})
	for range 10 {
		w := serve(g.Handler(ok), get(client))
		require.Equal(t, http.StatusOK, w.Code)
		require.Empty(t, w.Header().Values("RateLimit"))
		require.Empty(t, w.Header().Values("RateLimit-Policy"))
	}
	v := g.Check(get(client))
	require.Equal(t, stores.None, v.Outcomes[0].Source)
	require.ErrorIs(t, v.Outcomes[0].Fault, stores.ErrUnavailable)
	require.NoError(t, v.Err)
}

func TestOutageRefuseIs503(t *testing.T) {
	store := newSharedStore(t)
	store.fail = down
	p := byIP("p", 1)
	p.Outage = stores.OutageRefuse
	g := guardOf(t, Config{Store: store, Policies: []Policy{p, byIP("open", 1000)}})
	for range 10 {
		w := serve(g.Handler(ok), get(client))
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Contains(t, w.Body.String(), "temporary-reduced-capacity")
		require.NotContains(t, w.Body.String(), "violated")
		require.NotContains(t, w.Header().Get("RateLimit"), `"p"`)
		requireSane(t, w.Header(), w.Body.Bytes(), 10)
	}
	store.failWith(nil)
	page := serve(g.Handler(ok), get(client, "Accept", "text/html"))
	if page.Code == http.StatusServiceUnavailable {
		require.Contains(t, page.Body.String(), "Temporarily unavailable")
	}
}

// A refusal is an answer; nobody asks the fallback about it.
func TestRefusalIsNoFailure(t *testing.T) {
	store := newSharedStore(t)
	g := guardOf(t, Config{Store: store, Policies: []Policy{byIP("p", 2)}})
	require.Equal(t, 2, passes(t, g, 50, func(int) *http.Request { return get(client) }))
	require.Zero(t, g.Stats().Local, "the fallback decides nothing")
	require.Equal(t, failover.Closed, g.Stats().State)
	require.LessOrEqual(t, store.calls(), 4, "remembered refusals spare calls")
}

// An error that is no failure of the store (failover hands it on) is a 503, never a
// pass, and the log does not flood.
func TestErrorsAreNoFreePass(t *testing.T) {
	for name, kind := range map[string]error{"invalid": stores.ErrInvalid, "unsupported": errors.ErrUnsupported} {
		t.Run(name, func(t *testing.T) {
			store, log := newSharedStore(t), new(logBuffer)
			store.fail = func(context.Context, stores.Hit) error { return kind }
			g := guardOf(t, Config{Store: store, Policies: []Policy{byIP("p", 5)}, Logger: log.logger(), KeySecret: []byte("a secret of tests")})
			for range 1000 {
				w := serve(g.Handler(ok), get(client))
				require.Equal(t, http.StatusServiceUnavailable, w.Code)
				requireSane(t, w.Header(), w.Body.Bytes(), 5)
			}
			require.ErrorIs(t, g.Check(get(client)).Err, kind)
			require.Equal(t, 4, log.lines(), "the first, the tenth, the hundredth, the thousandth")
		})
	}
}

// Where a refusal ends nothing, an error ends nothing either; a Signal policy has
// not allowed the request, and those behind are still asked.
func TestErrorsOfOpenPolicies(t *testing.T) {
	store := newSharedStore(t)
	store.fail = func(_ context.Context, hit stores.Hit) error {
		if hit.Limit.Quota == 7 {
			return stores.ErrInvalid
		}
		return nil
	}
	open := byIP("open", 7)
	for mode, allowed := range map[Mode]bool{Report: true, Signal: false} {
		open.Mode = mode
		g := guardOf(t, Config{Store: store, Policies: []Policy{open, byIP("p-"+mode.String(), 2)}})
		ran := 0
		h := g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ran++
			if v, ok := FromContext(r.Context()); ok {
				require.Equal(t, allowed, v.Allowed)
				require.ErrorIs(t, v.Err, stores.ErrInvalid)
			}
		}))
		for range 5 {
			serve(h, get(client))
		}
		require.Equal(t, 2, ran, "the enforcing policy behind still counts")
	}
}

// A caller who hangs up is counted, his handler does not run, and nobody is told 200.
func TestCallerGone(t *testing.T) {
	store := newSharedStore(t)
	g := guardOf(t, Config{Store: store, Policies: []Policy{byIP("p", 5)}})
	ran := 0
	h := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran++ }))

	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	w := serve(h, get(client).WithContext(gone))
	require.Equal(t, 499, w.Code)
	require.Zero(t, store.calls(), "gone before anything was sent: nothing is counted")

	for i := range 20 { // hanging up in the middle saves nothing
		ctx, hangUp := context.WithCancel(t.Context())
		store.mu.Lock()
		store.after = hangUp
		store.mu.Unlock()
		w = serve(h, get(client).WithContext(ctx))
		if i < 5 {
			require.Equal(t, 499, w.Code)
			require.Empty(t, w.Body.String())
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		}
		hangUp()
	}
	require.Zero(t, ran)
	store.mu.Lock()
	store.after = nil
	store.mu.Unlock()
	require.Equal(t, http.StatusTooManyRequests, serve(h, get(client)).Code, "the hits stand")
	require.Equal(t, failover.Closed, g.Stats().State)

	v := g.Check(get(client).WithContext(gone))
	require.ErrorIs(t, v.Err, context.Canceled)
	require.False(t, v.Allowed)
}

// On memory alone a done context counts nothing and runs nothing either.
func TestCallerGoneOnMemory(t *testing.T) {
	g := onMemory(t, byIP("p", 1))
	ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	require.Equal(t, 499, g.Check(get(client).WithContext(ctx)).Status)
	require.True(t, g.Check(get(client)).Allowed)
}

// lateContext is done only after it was looked at once.
type lateContext struct {
	context.Context
	looks int
}

func (c *lateContext) Err() error {
	if c.looks++; c.looks > 1 {
		return context.Canceled
	}
	return nil
}

func TestMemoryErrors(t *testing.T) {
	g := onMemory(t, byIP("p", 1))
	late := &lateContext{Context: t.Context()}
	require.Equal(t, 499, g.Check(get(client).WithContext(late)).Status)
	require.True(t, g.Check(get(client)).Allowed, "nothing was counted")

	// A store that was never made decides nothing, and nothing passes.
	g, err := New(Config{Store: new(memory.Store), ClientIP: Direct(), Policies: []Policy{byIP("p", 1)}, Logger: new(logBuffer).logger()})
	if err != nil {
		require.ErrorIs(t, err, stores.ErrMisconfigured)
		return
	}
	w := serve(g.Handler(ok), get(client))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.ErrorIs(t, g.Check(get(client)).Err, stores.ErrMisconfigured)
}
