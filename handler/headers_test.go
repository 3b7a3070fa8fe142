package handler

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// readField parses a RateLimit field with a library that is not ours, and returns
// its items by name.
func readField(t testing.TB, lines []string) (names []string, params map[string]map[string]int64) {
	t.Helper()
	list, err := httpsfv.UnmarshalList(lines)
	require.NoError(t, err, "%q", lines)
	params = map[string]map[string]int64{}
	for _, member := range list {
		item := member.(httpsfv.Item)
		name := item.Value.(string)
		names = append(names, name)
		params[name] = map[string]int64{}
		for _, key := range item.Params.Names() {
			value, _ := item.Params.Get(key)
			params[name][key] = value.(int64)
		}
	}
	return names, params
}

func TestRateLimitFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := onMemory(t, byIP("contact-form", 5), Policy{
			Name: `a "quoted\" name`, Limit: stores.FixedWindow(9, 1500*time.Millisecond), Key: Join(ByRoute(), ByIP()),
		})
		h := g.Handler(ok)
		w := serve(h, get(client))
		require.Equal(t, `"contact-form";q=5;w=600, "a \"quoted\\\" name";q=9;w=2`, w.Header().Get("RateLimit-Policy"))
		require.Equal(t, `"contact-form";r=4;t=600, "a \"quoted\\\" name";r=8;t=2`, w.Header().Get("RateLimit"))
		require.Empty(t, w.Header().Values("Retry-After"))
		for range 4 {
			serve(h, get(client))
		}
		time.Sleep(188 * time.Second)
		w = serve(h, get(client))
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, `"contact-form";r=0;t=412`, w.Header().Get("RateLimit"))
		require.Equal(t, "412", w.Header().Get("Retry-After"))
		require.Equal(t, `"contact-form";q=5;w=600, "a \"quoted\\\" name";q=9;w=2`, w.Header().Get("RateLimit-Policy"), "the same on all responses")
		requireSane(t, w.Header(), w.Body.Bytes(), 600)
	})
}

// On a refusal t is when to try again, not when the whole quota is back, and a sloppy
// store's numbers are put right.
func TestRefusalTellsRetryNotReset(t *testing.T) {
	for _, tt := range []struct {
		say         stores.Decision
		state, wait string
	}{
		{stores.Decision{RetryAfter: 2001 * time.Millisecond, ResetAfter: time.Minute}, `"p";r=0;t=3`, "3"},
		{stores.Decision{RetryAfter: -time.Second, Remaining: -3, ResetAfter: -1}, `"p";r=0;t=1`, "1"},
		{stores.Decision{Remaining: 2, RetryAfter: 1}, `"p";r=2;t=1`, "1"},
	} {
		for style, remaining := range map[HeaderStyle]string{HeadersDraft8: "", HeadersLegacy: strconv.Itoa(max(0, tt.say.Remaining))} {
			store := newSharedStore(t)
			store.say = &tt.say
			w := serve(guardOf(t, Config{Store: store, Headers: style, Policies: []Policy{byIP("p", 9)}}).Handler(ok), get(client))
			require.Equal(t, tt.wait, w.Header().Get("Retry-After"))
			requireSane(t, w.Header(), w.Body.Bytes(), 9)
			require.Equal(t, remaining, w.Header().Get("X-RateLimit-Remaining"))
			if style == HeadersLegacy {
				require.Equal(t, tt.wait, w.Header().Get("X-RateLimit-Reset"))
			} else {
				require.Equal(t, tt.state, w.Header().Get("RateLimit"))
			}
		}
	}
}

// An integer, at least 1, rounded up, at most the window, and the same wherever
// it stands.
func TestRetryAfter(t *testing.T) {
	for _, window := range []time.Duration{200 * time.Millisecond, time.Second, 1500 * time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			g := onMemory(t, Policy{Name: "p", Limit: stores.FixedWindow(1, window), Key: ByIP()})
			h := g.Handler(ok)
			most := int((window + time.Second - 1) / time.Second)
			require.Equal(t, http.StatusOK, serve(h, get(client)).Code)
			opened := time.Now()
			for _, at := range []time.Duration{0, 1, window / 3, window / 2, window - time.Millisecond, window - 1} {
				time.Sleep(at - time.Since(opened))
				w := serve(h, get(client))
				require.Equal(t, http.StatusTooManyRequests, w.Code, "%s of %s", at, window)
				requireSane(t, w.Header(), w.Body.Bytes(), most)
				wait, _ := strconv.Atoi(w.Header().Get("Retry-After"))
				require.GreaterOrEqual(t, time.Duration(wait)*time.Second, window-at)
			}
			time.Sleep(time.Second)
			require.Equal(t, http.StatusOK, serve(h, get(client)).Code)
		})
	}
}

func TestWhatIsShown(t *testing.T) {
	f := ByFunc(func(r *http.Request) string { return "x" })
	for _, tt := range []struct {
		name  string
		p     Policy
		shown bool
	}{
		{"ip", Policy{Key: ByIP()}, true},
		{"network", Policy{Key: ByNetwork(24, 48)}, true},
		{"header", Policy{Key: ByHeader("X-Api-Key")}, true},
		{"cookie", Policy{Key: ByCookie("sid")}, true},
		{"first", Policy{Key: FirstOf(ByHeader("X-Api-Key"), ByCookie("c"), ByIP())}, true},
		{"join with route", Policy{Key: Join(ByRoute(), ByIP())}, true},
		{"route", Policy{Key: ByRoute()}, false},
		{"join of routes", Policy{Key: Join(ByRoute())}, false},
		{"everyone", Policy{Key: Everyone()}, false},
		{"join with everyone", Policy{Key: Join(ByIP(), Everyone())}, false},
		{"first with everyone", Policy{Key: FirstOf(ByHeader("A"), Everyone())}, false},
		{"func", Policy{Key: f}, false},
		{"join with func", Policy{Key: Join(ByIP(), f)}, false},
		{"email", Policy{Key: ByHeader("X-Email").Email()}, false},
		{"join with email", Policy{Key: Join(ByIP(), ByHeader("X-Email").Email())}, false},
		{"everyone, told to", Policy{Key: Everyone(), ShowQuota: true}, true},
		{"func, told to", Policy{Key: f, ShowQuota: true}, true},
		{"report", Policy{Key: ByIP(), Mode: Report, ShowQuota: true}, false},
		{"signal", Policy{Key: ByIP(), Mode: Signal, ShowQuota: true}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.p.Name, tt.p.Limit = "p", stores.FixedWindow(1, 10*time.Minute)
			g := onMemory(t, tt.p)
			r := get(client, "X-Api-Key", "k", "Cookie", "sid=1", "X-Email", "a@b.example")
			w := serve(g.Handler(ok), r)
			require.Equal(t, tt.shown, w.Header().Get("RateLimit") != "")
			require.Equal(t, tt.shown, w.Header().Get("RateLimit-Policy") != "")
			w = serve(g.Handler(ok), r)
			if tt.p.Mode != Enforce {
				require.Equal(t, http.StatusOK, w.Code)
				return
			}
			require.Equal(t, http.StatusTooManyRequests, w.Code)
			require.Equal(t, tt.shown, strings.Contains(w.Body.String(), `"violated-policies":["p"]`), w.Body.String())
		})
	}
}

// The refusal of a limit that others share tells their doings to a quarter of the
// window only.
func TestHiddenRefusalIsCoarse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := onMemory(t, Policy{Name: "everyone", Limit: stores.FixedWindow(1, 10*time.Minute), Key: Everyone()})
		h := g.Handler(ok)
		serve(h, get(another))
		for _, tt := range []struct {
			at   time.Duration
			want string
		}{{0, "600"}, {149 * time.Second, "600"}, {151 * time.Second, "450"}, {449 * time.Second, "300"}, {460 * time.Second, "150"}, {599 * time.Second, "150"}} {
			time.Sleep(tt.at - time.Since(start(t)))
			w := serve(h, get(client))
			require.Equal(t, tt.want, w.Header().Get("Retry-After"), "%s", tt.at)
			requireSane(t, w.Header(), w.Body.Bytes(), 600)
			require.NotContains(t, w.Body.String(), "everyone")
		}
	})
}

// start is the time at which a synctest bubble begins.
func start(t *testing.T) time.Time {
	t.Helper()
	return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
}

// Several guards around one handler write one line.
func TestNestedGuards(t *testing.T) {
	outer := onMemory(t, byIP("outer", 9))
	inner, err := outer.With(byIP("inner", 2))
	require.NoError(t, err)
	h := outer.Handler(inner.Handler(outer.Handler(ok)))
	w := serve(h, get(client))
	require.Len(t, w.Header().Values("RateLimit"), 1)
	names, state := readField(t, w.Header().Values("RateLimit"))
	require.Equal(t, []string{"inner", "outer"}, names)
	require.EqualValues(t, 7, state["outer"]["r"], "the guard that comes twice counts twice and shows the latest")
	names, _ = readField(t, w.Header().Values("RateLimit-Policy"))
	require.Equal(t, []string{"inner", "outer"}, names)

	serve(h, get(client))
	w = serve(h, get(client))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	names, state = readField(t, w.Header().Values("RateLimit"))
	require.Equal(t, []string{"outer", "inner"}, names)
	require.Equal(t, strconv.FormatInt(state["inner"]["t"], 10), w.Header().Get("Retry-After"))
}

func TestSetHeadersTwice(t *testing.T) {
	g := onMemory(t, byIP("p", 1))
	h := http.Header{}
	v := g.Check(get(client))
	v.SetHeaders(h)
	v.SetHeaders(h)
	require.Equal(t, []string{`"p";r=0;t=600`}, h.Values("RateLimit"))
	require.Equal(t, []string{`"p";q=1;w=600`}, h.Values("RateLimit-Policy"))
	v = g.Check(get(client))
	v.SetHeaders(h)
	require.Equal(t, "600", h.Get("Retry-After"))

	// Values are shared between responses; whoever adds to one must not change others.
	other := http.Header{}
	g.Check(get(another)).SetHeaders(other)
	other.Add("RateLimit-Policy", `"mine";q=1`)
	require.Len(t, g.quotas, 1)
	w := serve(g.Handler(ok), get("192.0.2.3:1"))
	require.Equal(t, []string{`"p";q=1;w=600`}, w.Header().Values("RateLimit-Policy"))
}

func TestSkippedAndPlannedPoliciesInFields(t *testing.T) {
	skipped, planned := byIP("skipped", 3), byIP("planned", 3)
	skipped.Skip = func(r *http.Request) bool { return r.Header.Get("Skip") != "" }
	planned.LimitBy = func(*http.Request) stores.Limit { return stores.FixedWindow(30, time.Minute) }
	g := onMemory(t, skipped, planned)
	w := serve(g.Handler(ok), get(client, "Skip", "1"))
	require.Equal(t, `"planned";q=30;w=60`, w.Header().Get("RateLimit-Policy"))
	require.Equal(t, `"planned";r=29;t=60`, w.Header().Get("RateLimit"))
	w = serve(g.Handler(ok), get(client))
	require.Equal(t, `"skipped";q=3;w=600, "planned";q=30;w=60`, w.Header().Get("RateLimit-Policy"))
}

func TestOtherStyles(t *testing.T) {
	off := guardOf(t, Config{Headers: HeadersOff, Policies: []Policy{byIP("p", 1)}})
	serve(off.Handler(ok), get(client))
	w := serve(off.Handler(ok), get(client))
	require.Equal(t, "600", w.Header().Get("Retry-After"))
	require.Empty(t, w.Header().Values("RateLimit"))
	require.Empty(t, w.Header().Values("X-RateLimit-Limit"))

	legacy := guardOf(t, Config{Headers: HeadersLegacy, Policies: []Policy{byIP("wide", 9), byIP("narrow", 2),
		{Name: "everyone", Limit: stores.FixedWindow(1000, time.Hour), Key: Everyone()}}})
	fields := func(w http.Header) []string {
		require.Empty(t, w.Values("RateLimit"))
		return []string{w.Get("X-RateLimit-Limit"), w.Get("X-RateLimit-Remaining"), w.Get("X-RateLimit-Reset"), w.Get("Retry-After")}
	}
	require.Equal(t, []string{"2", "1", "600", ""}, fields(serve(legacy.Handler(ok), get(client)).Header()))
	wide, err := legacy.With(byIP("another", 100))
	require.NoError(t, err)
	require.Equal(t, []string{"2", "0", "600", ""}, fields(serve(legacy.Handler(wide.Handler(ok)), get(client)).Header()), "the nearest to a refusal stays")
	require.Equal(t, []string{"2", "0", "600", "600"}, fields(serve(wide.Handler(legacy.Handler(ok)), get(client)).Header()))
}

// Numbers stay within what a structured field may hold.
func TestFieldBounds(t *testing.T) {
	g := onMemory(t, Policy{Name: "p", Limit: stores.FixedWindow(1<<53-1, 87600*time.Hour), Key: ByIP()})
	w := serve(g.Handler(ok), get(client))
	_, state := readField(t, w.Header().Values("RateLimit"))
	require.EqualValues(t, maxField, state["p"]["r"])
	_, quota := readField(t, w.Header().Values("RateLimit-Policy"))
	require.EqualValues(t, maxField, quota["p"]["q"])
}

// Any name and any numbers make fields that a strict parser reads back.
func FuzzFields(f *testing.F) {
	f.Add("contact-form", 5, int64(600_000), `"outer";r=1;t=2`, 3)
	f.Add(`";r=9,"`, 1, int64(1), `"a,b;\"c";q=1, "x"`, -4)
	f.Add(`\`, 1<<40, int64(1<<40), ``, 0)
	f.Fuzz(func(t *testing.T, name string, quota int, ms int64, old string, remaining int) {
		limit := stores.FixedWindow(quota, time.Duration(ms)*time.Millisecond)
		if len(name) == 0 || len(name) > maxName || !printable(name) || limit.Validate() != nil {
			return
		}
		g := onMemory(t, Policy{Name: name, Limit: limit, Key: ByIP()})
		v := g.Check(get(client))
		v.detail.outcomes[0].Remaining = remaining
		h := http.Header{}
		if old != "" {
			h["Ratelimit"] = []string{old}
			h["Ratelimit-Policy"] = []string{old}
		}
		before, err := httpsfv.UnmarshalList([]string{old})
		v.SetHeaders(h)
		v.SetHeaders(h)
		require.Len(t, h["Ratelimit"], 1)
		if err != nil {
			return // rubbish stays rubbish
		}
		after, err := httpsfv.UnmarshalList(h["Ratelimit"])
		require.NoError(t, err, "%q", h["Ratelimit"])
		want := 1
		for _, member := range before {
			if item, ok := member.(httpsfv.Item); !ok || item.Value != name {
				want++
			}
		}
		require.Len(t, after, want, "%q and %q make %q", old, name, h["Ratelimit"])
		last := after[len(after)-1].(httpsfv.Item)
		require.Equal(t, name, last.Value)
		r, _ := last.Params.Get("r")
		require.EqualValues(t, min(max(remaining, 0), maxField), r)
		quotas, err := httpsfv.UnmarshalList(h["Ratelimit-Policy"])
		require.NoError(t, err)
		w, _ := quotas[len(quotas)-1].(httpsfv.Item).Params.Get("w")
		require.GreaterOrEqual(t, w, int64(1))
	})
}
