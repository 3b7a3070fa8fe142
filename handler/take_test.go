package handler

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// Take, Peek and Reset meet the very counter that requests use.
func TestTakeMeetsTheCounterOfRequests(t *testing.T) {
	function := ByFunc(func(r *http.Request) string { return r.Header.Get("X-User") })
	route := get(client)
	route.Pattern = "POST /x"
	for name, tt := range map[string]struct {
		key      Key
		request  *http.Request
		identity []string
	}{
		"ip":            {ByIP(), get("203.0.113.9:1"), []string{"203.0.113.9"}},
		"mapped":        {ByIP(), get("203.0.113.9:1"), []string{" [::ffff:203.0.113.9]:80 "}},
		"v6":            {ByIP(), get("[2001:db8::1]:1"), []string{"2001:db8::ffff"}},
		"network":       {ByNetwork(24, 48), get("203.0.113.9:1"), []string{"203.0.113.200"}},
		"header":        {ByHeader("X-Api-Key"), get(client, "X-Api-Key", " k "), []string{"k"}},
		"cookie":        {ByCookie("sid"), get(client, "Cookie", "sid=k"), []string{"k"}},
		"email":         {ByHeader("X-Email").Email(), get(client, "X-Email", "A@B.example"), []string{"a@b.EXAMPLE "}},
		"func":          {function, get(client, "X-User", "u"), []string{"u"}},
		"route":         {ByRoute(), route, []string{"POST /x"}},
		"everyone":      {Everyone(), get(client), nil},
		"join":          {Join(ByIP(), ByHeader("X-Api-Key"), Everyone()), get(client, "X-Api-Key", "k"), []string{"203.0.113.9", "k"}},
		"first":         {FirstOf(ByHeader("X-Api-Key"), ByIP()), get(client, "X-Api-Key", "k"), []string{"k", ""}},
		"second":        {FirstOf(ByHeader("X-Api-Key"), ByIP()), get(client), []string{"", "203.0.113.9"}},
		"first ignored": {FirstOf(ByHeader("X-Api-Key"), ByIP()), get(client, "X-Api-Key", "k"), []string{"k", "198.51.100.1"}},
		"nested":        {Join(FirstOf(ByHeader("X-Api-Key"), ByIP()), ByHeader("B")), get(client, "B", "b"), []string{"", "203.0.113.9", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			bothPaths(t, func(t *testing.T, store stores.Store) {
				ctx := t.Context()
				g := guardOf(t, Config{Store: store, Policies: []Policy{{Name: "p", Limit: stores.FixedWindow(3, time.Hour), Key: tt.key}}})
				require.True(t, g.Check(tt.request).Allowed)
				d, err := g.Take(ctx, "p", 0, tt.identity...)
				require.NoError(t, err)
				require.Equal(t, 1, d.Remaining)
				d, err = g.Peek(ctx, "p", tt.identity...)
				require.NoError(t, err)
				require.True(t, d.Allowed)
				require.Equal(t, 1, d.Remaining)
				d, err = g.Take(ctx, "p", 2, tt.identity...)
				require.NoError(t, err)
				require.False(t, d.Allowed)
				require.True(t, g.Check(tt.request).Allowed)
				require.False(t, g.Check(tt.request).Allowed)
				if s, ok := store.(*sharedStore); ok && s.fail != nil {
					_ = g.Reset(ctx, "p", tt.identity...) // the shared half of it may fail
				} else {
					require.NoError(t, g.Reset(ctx, "p", tt.identity...))
				}
				require.True(t, g.Check(tt.request).Allowed)
			})
		})
	}
}

func TestTakeReportsBadIdentities(t *testing.T) {
	manualPolicy := byIP("manual", 2)
	manualPolicy.Key = Manual()
	joined := byIP("join", 2)
	joined.Key = Join(ByIP(), FirstOf(ByHeader("A"), ByHeader("B")))
	g := onMemory(t, byIP("ip", 2), manualPolicy, joined)
	for _, identity := range [][]string{
		{"unknown"},
		{"ip"}, {"ip", ""}, {"ip", "secret-text"}, {"ip", "192.0.2.1", "x"},
		{"join", "192.0.2.1"}, {"join", "192.0.2.1", "", ""}, {"join", "secret-text", "a", ""},
	} {
		for _, call := range []func() error{
			func() error { _, err := g.Take(t.Context(), identity[0], 1, identity[1:]...); return err },
			func() error { _, err := g.Peek(t.Context(), identity[0], identity[1:]...); return err },
			func() error { return g.Reset(t.Context(), identity[0], identity[1:]...) },
		} {
			err := call()
			require.ErrorIs(t, err, stores.ErrInvalid, "%q", identity)
			require.NotContains(t, err.Error(), "secret")
		}
	}
	_, err := g.Take(t.Context(), "ip", -1, "192.0.2.1")
	require.ErrorIs(t, err, stores.ErrInvalid)

	for _, identity := range [][]string{nil, {""}, {"job"}, {"job", "7"}, {"job7"}} {
		for i := range 3 {
			d, err := g.Take(t.Context(), "manual", 1, identity...)
			require.NoError(t, err)
			require.Equal(t, i < 2, d.Allowed, "%q", identity)
		}
	}
	require.Len(t, g.Check(get(client)).Outcomes, 2, "no request asks a manual policy")
}

// A Signal policy answers Take by the store each time, so that time tells nothing.
func TestTakeOfSignalAsksTheStore(t *testing.T) {
	for mode, calls := range map[Mode]int{Signal: 10, Enforce: 2} {
		store := newSharedStore(t)
		p := byIP("p", 1)
		p.Mode = mode
		g := guardOf(t, Config{Store: store, Policies: []Policy{p}})
		for range 10 {
			_, err := g.Take(t.Context(), "p", 1, "192.0.2.1")
			require.NoError(t, err)
		}
		require.Equal(t, calls, store.calls(), mode)
	}
}

func TestRefundAndReset(t *testing.T) {
	bothPaths(t, func(t *testing.T, store stores.Store) {
		report := byIP("report", 10)
		report.Mode = Report
		report.Cost = func(*http.Request) int { return 4 }
		g := guardOf(t, Config{Store: store, Policies: []Policy{report, byIP("a", 2), byIP("b", 5)}})
		g.Check(get(client))
		v := g.Check(get(client))
		require.NoError(t, v.Refund(t.Context()))
		copied := v
		require.NoError(t, copied.Refund(t.Context()), "twice gives nothing more")
		v = g.Check(get(client))
		for i, want := range []int{2, 0, 3} {
			require.Equal(t, want, v.Outcomes[i].Remaining)
		}
		v = g.Check(get(client))
		require.Equal(t, http.StatusTooManyRequests, v.Status)
		require.NoError(t, v.Refund(t.Context()), "a refused hit gives nothing back")
		require.Equal(t, http.StatusTooManyRequests, g.Check(get(client)).Status)

		require.ErrorIs(t, v.Reset(t.Context(), "unknown"), stores.ErrInvalid)
		err := v.Reset(t.Context(), "a")
		if s, ok := store.(*sharedStore); !ok || s.fail == nil {
			require.NoError(t, err)
		}
		require.True(t, g.Check(get(client)).Allowed)
	})
}
