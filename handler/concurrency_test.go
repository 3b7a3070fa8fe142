package handler

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// A hundred at once, five pass, and the store is asked in one step.
func TestParallelRequests(t *testing.T) {
	bothPaths(t, func(t *testing.T, store stores.Store) {
		report := byIP("report", 3)
		report.Mode = Report
		cfg := Config{Store: store, Policies: []Policy{report, byIP("p", 5), byIP("q", 1000)}}
		guards := []*Guard{guardOf(t, cfg)}
		if s, ok := store.(*sharedStore); ok && s.fail == nil {
			guards = append(guards, guardOf(t, cfg), guardOf(t, cfg)) // more instances over one store
		}
		for round := range 20 {
			var passed, refused atomic.Int64
			var handlers []http.Handler
			for _, g := range guards {
				handlers = append(handlers, g.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { passed.Add(1) })))
			}
			remote := fmt.Sprintf("192.0.2.%d:80", round)
			var wg sync.WaitGroup
			begin := make(chan struct{})
			for i := range 100 {
				wg.Go(func() {
					<-begin
					w := httptest.NewRecorder()
					handlers[i%len(handlers)].ServeHTTP(w, get(remote))
					if w.Code == http.StatusTooManyRequests {
						refused.Add(1)
					}
				})
			}
			close(begin)
			wg.Wait()
			require.EqualValues(t, 5, passed.Load())
			require.EqualValues(t, 95, refused.Load())
		}
	})
}

// Verdicts of requests at the same time don't mix: each client reads his own
// numbers, by whatever way he reads them.
func TestParallelVerdictsDoNotMix(t *testing.T) {
	g := guardOf(t, Config{Verdicts: true, Policies: []Policy{byIP("a", 1000), byIP("b", 2000), byIP("c", 50)}})
	plain, err := g.With(byIP("d", 1000))
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			remote := fmt.Sprintf("192.0.2.%d:80", i)
			for n := range 60 {
				ran := false
				w := serve(g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					ran = true
					v, _ := FromContext(r.Context())
					if len(v.Outcomes) != 3 || v.Outcomes[0].Remaining != 999-n || v.Outcomes[2].Remaining != 49-n {
						t.Errorf("request %d: %+v", n, v.Outcomes)
					}
				})), get(remote))
				if ran != (n < 50) || ran != (w.Code == http.StatusOK) {
					t.Errorf("request %d: %d", n, w.Code)
				}
				w = serve(plain.Handler(ok), get(remote))
				if want := fmt.Sprintf(`"d";r=%d;t=600`, 999-n); w.Header().Get("RateLimit") != want {
					t.Errorf("request %d: %s, want %s", n, w.Header().Get("RateLimit"), want)
				}
			}
		})
	}
	wg.Wait()
}

// Nothing is locked while the handler runs.
func TestHandlersRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := onMemory(t, byIP("p", 100))
		h := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) }))
		begin := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { serve(h, get(client)) })
		}
		wg.Wait()
		require.Equal(t, time.Second, time.Since(begin))
	})
}

// A panic in a function of a policy costs nobody anything; the handler's own
// passes through, and its hit stays counted.
func TestPanics(t *testing.T) {
	log := new(logBuffer)
	panicking := atomic.Bool{}
	boom := func() {
		if panicking.Load() {
			panic("secret-marker")
		}
	}
	p := byIP("p", 30)
	p.Key = ByFunc(func(r *http.Request) string { boom(); return r.RemoteAddr })
	p.Skip = func(*http.Request) bool { boom(); return false }
	p.Cost = func(*http.Request) int { boom(); return 1 }
	p.LimitBy = func(*http.Request) stores.Limit { boom(); return stores.Limit{} }
	g := guardOf(t, Config{Policies: []Policy{p}, Logger: log.logger()})
	h := g.Handler(ok)

	panicking.Store(true)
	require.Equal(t, 30, passes(t, g, 40, func(int) *http.Request { return get(client) }))
	require.Contains(t, log.String(), "panicked")
	require.NotContains(t, log.String(), "secret-marker")
	require.Less(t, log.lines(), 6)
	panicking.Store(false)
	for range 20 {
		require.Equal(t, http.StatusOK, serve(h, get(client)).Code)
	}

	bad := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	before := g.Check(get(client)).Outcomes[0].Remaining
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { serve(bad, get(client)) })
	require.Equal(t, before-2, g.Check(get(client)).Outcomes[0].Remaining)
}

// Hooks may call back, and one that panics leaves nothing behind.
func TestHooksMayCallBack(t *testing.T) {
	var g *Guard
	broken := false
	p := byIP("p", 2)
	p.Refused = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = g.Stats()
		_, err := g.Peek(r.Context(), "p", "192.0.2.1")
		require.NoError(t, err)
		w.WriteHeader(http.StatusTooManyRequests)
	})
	g = guardOf(t, Config{
		Policies: []Policy{p},
		Decorate: func(http.Header, *http.Request) { require.NoError(t, g.Reset(t.Context(), "p", "192.0.2.200")) },
		Observe: func(ctx context.Context, v Verdict) {
			if broken {
				panic("hook")
			}
			_, err := g.Take(ctx, "p", 1, "192.0.2.9")
			require.NoError(t, err)
		},
	})
	require.Equal(t, 2, passes(t, g, 5, func(int) *http.Request { return get(client) }))
	broken = true
	require.Panics(t, func() { g.Check(get(another)) })
	broken = false
	require.Equal(t, 1, passes(t, g, 5, func(int) *http.Request { return get(another) }))
}
