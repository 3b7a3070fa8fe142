package handler

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
	"github.com/sallyport/sallyport/stores/memory"
)

func TestLimitHoldsOnEveryPath(t *testing.T) {
	bothPaths(t, func(t *testing.T, store stores.Store) {
		g := guardOf(t, Config{Store: store, Policies: []Policy{byIP("contact-form", 5)}})
		require.Equal(t, 5, passes(t, g, 20, func(int) *http.Request { return get(client) }))
		require.Equal(t, 5, passes(t, g, 6, func(int) *http.Request { return get(another) }), "an honest client has a budget of his own")
	})
}

// Flooding with made-up identities buys nothing: the offender stays refused, whether
// he goes on or keeps quiet, and who used up a quota is not forgiven.
func TestFloodForgivesNobody(t *testing.T) {
	m, err := memory.New(memory.Config{MaxKeys: 1000})
	require.NoError(t, err)
	down := newSharedStore(t)
	down.fail = func(context.Context, stores.Hit) error { return errStrange }
	for name, cfg := range map[string]Config{
		"memory":   {Store: m},
		"fallback": {Store: down, Failover: failover.Config{MaxKeys: 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			p := byIP("p", 5)
			p.Key = FirstOf(ByHeader("X-Api-Key"), ByIP())
			cfg.Policies = []Policy{p}
			g := guardOf(t, cfg)
			require.Equal(t, 5, passes(t, g, 9, func(int) *http.Request { return get(client, "X-Api-Key", "offender") }))
			require.Equal(t, 5, passes(t, g, 5, func(int) *http.Request { return get(another) }), "used up, never refused, and quiet from now on")
			for i := range 20_000 {
				g.Check(get(client, "X-Api-Key", "made-up-"+strconv.Itoa(i)))
				if i%7 == 0 {
					require.False(t, g.Check(get(client, "X-Api-Key", "offender")).Allowed)
				}
			}
			require.False(t, g.Check(get(another)).Allowed)
			require.LessOrEqual(t, g.Stats().Memory.Keys, 1000)
			require.True(t, g.Check(get("192.0.2.200:1")).Allowed, "a newcomer is served")
		})
	}
}

// No header that a client writes moves him to another budget, or takes another's.
func TestClientHeadersChooseNothing(t *testing.T) {
	for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Forwarded"} {
		g := onMemory(t, byIP("p", 5))
		require.Equal(t, 5, passes(t, g, 20, func(i int) *http.Request {
			return get(client, name, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}).String())
		}), name)
		require.Equal(t, 0, passes(t, g, 5, func(int) *http.Request { return get(client, name, "198.51.100.7") }))
		require.True(t, g.Check(get(another)).Allowed, "the victim still passes")
	}
}

func TestAllowAndDeny(t *testing.T) {
	store := newSharedStore(t)
	g := guardOf(t, Config{
		Store: store, ClientIP: TrustedHops(1), Policies: []Policy{byIP("p", 1)},
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("192.0.2.1/32")},
		Deny:  []netip.Prefix{netip.MustParsePrefix("::ffff:192.0.2.0/120"), netip.MustParsePrefix("2001:db8::/32")},
	})
	for range 3 {
		v := g.Check(get(client, "X-Forwarded-For", "192.0.2.1"))
		require.True(t, v.Allowed, "Allow wins over Deny")
		require.Empty(t, v.Outcomes)
	}
	for _, addr := range []string{"192.0.2.2", "::ffff:192.0.2.2", "192.0.2.2:80", "2001:db8::1"} {
		w := serve(g.Handler(ok), get(client, "X-Forwarded-For", addr))
		require.Equal(t, http.StatusForbidden, w.Code, addr)
		require.Contains(t, w.Body.String(), "abnormal-usage-detected")
		require.Empty(t, w.Header().Get("Retry-After"))
	}
	require.Zero(t, store.calls())

	// A peer on the list that forwards nothing readable is no allowed client.
	require.Equal(t, 1, passes(t, g, 20, func(i int) *http.Request {
		return get("127.0.0.1:1", "X-Forwarded-For", []string{"unknown", ", ,", ""}[i%3])
	}))
}

func TestStrictRefusesWhatIsUnproven(t *testing.T) {
	store := newSharedStore(t)
	p := byIP("p", 5)
	p.Skip = Paths("/healthz")
	g := guardOf(t, Config{Store: store, ClientIP: TrustedHops(2).Strict(), Policies: []Policy{p}})
	w := serve(g.Handler(ok), get(client, "X-Forwarded-For", "192.0.2.1"))
	require.Equal(t, http.StatusForbidden, w.Code)
	require.NotContains(t, w.Body.String(), "abnormal")
	require.Zero(t, store.calls())
	require.Equal(t, http.StatusOK, serve(g.Handler(ok), from(client, "GET", "/healthz")).Code, "the platform's own probe comes without a chain")
	require.True(t, g.Check(get(client, "X-Forwarded-For", "192.0.2.1, 10.0.0.1")).Allowed)
	require.False(t, g.ClientAddr(get(client)).IsValid())
	require.Equal(t, "192.0.2.1", g.ClientAddr(get(client, "X-Forwarded-For", "192.0.2.1, 10.0.0.1")).String())
}

// The method on the wire counts, and each request counts once.
func TestMethods(t *testing.T) {
	g := onMemory(t, byIP("p", 100))
	left := 100
	for _, method := range []string{"GET", "HEAD", "POST", "post", "OPTIONS", "HEAD"} {
		v := g.Check(from(client, method, "/", "X-HTTP-Method-Override", "OPTIONS"))
		left--
		require.Equal(t, left, v.Outcomes[0].Remaining, method)
	}
}

// A real preflight is not counted, anything that merely looks like one is.
func TestPreflight(t *testing.T) {
	store := newSharedStore(t)
	g := guardOf(t, Config{Store: store, Policies: []Policy{byIP("p", 2)}})
	for range 50 {
		require.True(t, g.Check(from(client, "OPTIONS", "/", "Origin", "https://a.example", "Access-Control-Request-Method", "POST")).Allowed)
	}
	require.Zero(t, store.calls())
	passed := 0
	for _, r := range []*http.Request{
		from(client, "OPTIONS", "/"),
		from(client, "OPTIONS", "/", "Origin", "https://a.example"),
		from(client, "OPTIONS", "/", "Access-Control-Request-Method", "POST"),
		from(client, "GET", "/", "Origin", "https://a.example", "Access-Control-Request-Method", "POST"),
	} {
		if g.Check(r).Allowed {
			passed++
		}
	}
	require.Equal(t, 2, passed)
}

// Probes reach the handler whatever happens, and their near misses count.
func TestHealthChecks(t *testing.T) {
	store := newSharedStore(t)
	p := byIP("p", 1)
	p.Skip = Paths("/healthz")
	g := guardOf(t, Config{Store: store, Policies: []Policy{p}})
	require.True(t, g.Check(get(client)).Allowed)
	store.failWith(down)
	calls := store.calls()
	for range 1000 {
		w := serve(g.Handler(ok), from(client, "GET", "/healthz?x=1"))
		require.Equal(t, http.StatusOK, w.Code)
		require.Empty(t, w.Header().Values("RateLimit"))
	}
	require.Equal(t, calls, store.calls())
	store.failWith(nil)
	require.False(t, g.Check(from(client, "GET", "/healthz/")).Allowed)
}

// A refusal ends the chain: what others share is not charged for a refused caller.
func TestRefusedCallerChargesNothingBehind(t *testing.T) {
	bothPaths(t, func(t *testing.T, store stores.Store) {
		everyone := Policy{Name: "everyone", Limit: stores.FixedWindow(10, time.Hour), Key: Everyone()}
		g := guardOf(t, Config{Store: store, Policies: []Policy{byIP("ip", 2), everyone}})
		require.Equal(t, 2, passes(t, g, 500, func(int) *http.Request { return get(client) }))
		v := g.Check(get(another))
		require.True(t, v.Allowed)
		require.Len(t, v.Outcomes, 2)
		require.Equal(t, 7, v.Outcomes[1].Remaining, "two of the flooder, one of the honest client")
		refused := g.Check(get(client))
		_, asked := refused.Of("everyone")
		require.False(t, asked)
	})
}

// Whatever the order: a refusal that the instance remembers is found before anything
// is charged.
func TestRememberedRefusalChargesNothingBefore(t *testing.T) {
	store := newSharedStore(t)
	g := guardOf(t, Config{Store: store, Policies: []Policy{
		{Name: "everyone", Limit: stores.FixedWindow(1000, time.Hour), Key: Everyone()},
		byIP("ip", 2),
	}})
	require.Equal(t, 2, passes(t, g, 500, func(int) *http.Request { return get(client) }))
	v := g.Check(get(another))
	require.Equal(t, 1000-4, v.Outcomes[0].Remaining, "two passed, one was refused by the store, the rest by memory")
	v = g.Check(get(client))
	require.Len(t, v.Outcomes, 1)
	require.Equal(t, "ip", v.Outcomes[0].Policy)
	require.Equal(t, stores.Remembered, v.Outcomes[0].Source)
}

func TestLimitByAndCost(t *testing.T) {
	bothPaths(t, func(t *testing.T, store stores.Store) {
		p := byIP("plan", 3)
		p.LimitBy = func(r *http.Request) stores.Limit {
			switch r.Header.Get("Plan") {
			case "big":
				return stores.FixedWindow(10, 10*time.Minute)
			case "broken":
				return stores.Limit{Quota: -1}
			case "panic":
				panic("no plan")
			}
			return stores.Limit{}
		}
		p.Cost = func(r *http.Request) int {
			switch r.Header.Get("Cost") {
			case "many":
				return 4
			case "minus":
				return -3
			case "panic":
				panic("no cost")
			}
			return 0
		}
		g := guardOf(t, Config{Store: store, Policies: []Policy{p}})
		for i, plan := range []string{"", "broken", "panic"} {
			v := g.Check(get(client, "Plan", plan, "Cost", []string{"", "minus", "panic"}[i]))
			require.True(t, v.Allowed)
			require.Equal(t, 2-i, v.Outcomes[0].Remaining, "plan %q", plan)
		}
		require.False(t, g.Check(get(client)).Allowed)
		v := g.Check(get(client, "Plan", "big", "Cost", "many"))
		require.True(t, v.Allowed, "state is kept while only the quota differs")
		require.Equal(t, 3, v.Outcomes[0].Remaining)
		require.Equal(t, 10, v.Outcomes[0].Limit.Quota)

		w := serve(g.Handler(ok), get(client, "Cost", "many"))
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Empty(t, w.Header().Values("Retry-After"), "no waiting helps a cost above the quota")
		require.Contains(t, w.Body.String(), "Waiting does not help")
	})
}

// A plan that the store can't serve is no 503 for the customer and no free pass.
func TestLimitByBeyondTheStore(t *testing.T) {
	log := new(logBuffer)
	p := byIP("p", 2)
	p.LimitBy = func(*http.Request) stores.Limit { return stores.SlidingLog(1000, time.Minute) }
	g := guardOf(t, Config{Store: narrowStore{newSharedStore(t)}, Policies: []Policy{p}, Logger: log.logger(), KeySecret: []byte("a secret of tests")})
	require.Equal(t, 2, passes(t, g, 50, func(int) *http.Request { return get(client) }))
	require.Contains(t, log.String(), "LimitBy")
	require.LessOrEqual(t, log.lines(), 2)
}

func TestObserveSeesEachVerdict(t *testing.T) {
	store := newSharedStore(t)
	store.after = func() { time.Sleep(time.Millisecond) }
	var seen []Verdict
	var g *Guard
	p := byIP("p", 1)
	p.Skip = Paths("/skipped")
	g = guardOf(t, Config{Store: store, Policies: []Policy{p}, Observe: func(ctx context.Context, v Verdict) {
		_ = g.Stats() // a hook may call back
		seen = append(seen, v)
	}})
	h := g.Handler(ok)
	serve(h, get(client))
	serve(h, get(client))
	serve(h, from(client, "GET", "/skipped"))
	for range 100 {
		serve(h, get(another)) // uses what is pooled again
	}
	require.Len(t, seen, 103)
	require.True(t, seen[0].Allowed)
	require.Equal(t, 0, seen[0].Status)
	require.Positive(t, seen[0].Elapsed)
	require.Equal(t, "p", seen[0].Outcomes[0].Policy)
	require.Equal(t, http.StatusTooManyRequests, seen[1].Status)
	require.False(t, seen[1].Allowed)
	require.True(t, seen[2].Allowed)
	require.Empty(t, seen[2].Outcomes)
}

func TestNilGuardAndZeroVerdict(t *testing.T) {
	var g *Guard
	require.Equal(t, http.StatusServiceUnavailable, serve(g.Handler(ok), get(client)).Code)
	require.ErrorIs(t, g.Check(get(client)).Err, stores.ErrMisconfigured)
	_, err := g.Take(t.Context(), "p", 1)
	require.ErrorIs(t, err, stores.ErrMisconfigured)
	_, err = g.Peek(t.Context(), "p")
	require.ErrorIs(t, err, stores.ErrMisconfigured)
	require.ErrorIs(t, g.Reset(t.Context(), "p"), stores.ErrMisconfigured)
	_, err = g.With(byIP("p", 1))
	require.ErrorIs(t, err, stores.ErrMisconfigured)
	require.Zero(t, g.Stats())
	require.False(t, g.ClientAddr(get(client)).IsValid())

	var v Verdict
	require.False(t, v.Allowed)
	require.Zero(t, v.RetryAfter())
	require.NoError(t, v.Refund(t.Context()))
	require.ErrorIs(t, v.Reset(t.Context(), "p"), stores.ErrInvalid)
	v.SetHeaders(http.Header{})
	w := serve(http.HandlerFunc(v.Refuse), get(client))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
}
