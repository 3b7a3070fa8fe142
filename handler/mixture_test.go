package handler

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// mixture is a guard of random policies over a store that may fail, and what it must
// never do whatever is mixed.
type mixture struct {
	t        *testing.T
	policies []Policy
	guard    *Guard
	handler  http.Handler
	log      *logBuffer

	mu     sync.Mutex
	kept   []Verdict // as Observe got them
	copies [][]Outcome
}

type seenKey struct{}

// seen is what a request left behind.
type seen struct {
	ran     int
	verdict Verdict
}

func newMixture(t *testing.T, rnd *rand.Rand) *mixture {
	m := &mixture{t: t, log: new(logBuffer)}
	odd := func(r *http.Request) bool { return len(r.Header.Get("X-Api-Key"))%2 == 1 }
	keys := []Key{
		ByIP(), ByNetwork(24, 48), ByHeader("X-Api-Key"), ByCookie("sid"), ByHeader("X-Email").Email(), Everyone(), ByRoute(),
		Join(ByIP(), ByHeader("X-Api-Key")), FirstOf(ByHeader("X-Api-Key"), ByCookie("sid"), ByIP()),
		ByFunc(func(r *http.Request) string {
			if odd(r) {
				panic("key")
			}
			return r.URL.Path
		}),
	}
	for i := range 1 + rnd.IntN(4) {
		p := Policy{
			Name:      fmt.Sprintf(`p%d"\;,`, i),
			Limit:     stores.FixedWindow(1+rnd.IntN(4), time.Hour),
			Key:       keys[rnd.IntN(len(keys))],
			Mode:      Mode(rnd.IntN(3)),
			Outage:    stores.Outage(rnd.IntN(3)),
			ShowQuota: rnd.IntN(2) == 0,
		}
		if rnd.IntN(4) == 0 {
			p.Skip = func(r *http.Request) bool {
				if odd(r) {
					panic("skip")
				}
				return r.URL.Path == "/skip"
			}
		}
		if rnd.IntN(4) == 0 {
			p.Cost = func(r *http.Request) int { return len(r.Header.Get("X-Api-Key")) - 1 }
		}
		if rnd.IntN(4) == 0 {
			p.LimitBy = func(r *http.Request) stores.Limit {
				if odd(r) {
					return stores.Limit{Quota: -1}
				}
				return stores.FixedWindow(p.Limit.Quota+1, p.Limit.Window)
			}
		}
		if rnd.IntN(6) == 0 {
			p.Refused = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				v, found := FromContext(r.Context())
				if !found || v.Status == 0 {
					t.Error("a refusal without its Verdict")
				}
				w.WriteHeader(v.Status)
			})
		}
		m.policies = append(m.policies, p)
	}
	cfg := Config{
		ClientIP: []ClientIP{Direct(), TrustedHops(1), TrustedHops(1).Strict()}[rnd.IntN(3)],
		Policies: m.policies, Headers: HeaderStyle(rnd.IntN(3)), Verdicts: rnd.IntN(2) == 0, Logger: m.log.logger(), KeySecret: []byte("a secret of tests"),
		Deny: mustPrefixes("192.0.2.3/32"),
	}
	if rnd.IntN(3) > 0 {
		cfg.Observe = m.observe
	}
	switch rnd.IntN(3) {
	case 0:
		store, err := memory.New(memory.Config{MaxKeys: 1000})
		require.NoError(t, err)
		cfg.Store = store
	default:
		store, faults := newSharedStore(t), rand.New(rand.NewPCG(rnd.Uint64(), 1))
		often := []int{0, 2, 10}[rnd.IntN(3)] // tenths
		var mu sync.Mutex
		store.fail = func(ctx context.Context, hit stores.Hit) error {
			mu.Lock()
			n := faults.IntN(40)
			mu.Unlock()
			switch {
			case n >= 4*often:
				return nil
			case n%4 == 0:
				return stores.ErrInvalid
			}
			return down(ctx, hit)
		}
		cfg.Store = store
	}
	m.guard = guardOf(t, cfg)
	m.handler = m.guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s, ok := r.Context().Value(seenKey{}).(*seen); ok {
			s.ran++
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	return m
}

func (m *mixture) observe(ctx context.Context, v Verdict) {
	if s, ok := ctx.Value(seenKey{}).(*seen); ok {
		s.verdict = v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = append(m.kept, v)
	m.copies = append(m.copies, slices.Clone(v.Outcomes))
}

// request makes one that may be odd.
func (m *mixture) request(rnd *rand.Rand) *http.Request {
	pick := func(texts ...string) string { return texts[rnd.IntN(len(texts))] }
	r := httptest.NewRequest(pick("GET", "GET", "HEAD", "POST", "OPTIONS"), pick("/", "/skip", "/a"), nil)
	r.RemoteAddr = pick("192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1", "192.0.2.3:1", "[2001:db8::1]:1", "[2001:db8::2]:1", "@", "")
	r.Pattern = pick("", "GET /")
	add := func(name string, values ...string) {
		if value := pick(values...); value != "-" {
			r.Header.Add(name, value)
		}
	}
	add("X-Forwarded-For", "-", "203.0.113.1", "203.0.113.2, 203.0.113.1", "junk", "203.0.113.2", "")
	add("X-Api-Key", "-", "a", "bb", "ccc", "", "\x00\xff\"")
	add("X-Api-Key", "-", "-", "-", "dddddd")
	add("Cookie", "-", "sid=1", "sid=2", "sid=1; sid=2", "sid=")
	add("X-Email", "-", "a@b.example", " A@B.example ", "\xff")
	add("Accept", "-", "text/html", "application/json", "*/*")
	add("Origin", "-", "https://a.example")
	add("Access-Control-Request-Method", "-", "POST")
	return r
}

// ask sends one request and checks the answer.
func (m *mixture) ask(r *http.Request) {
	t, s := m.t, new(seen)
	r = r.WithContext(context.WithValue(r.Context(), seenKey{}, s))
	free := isPreflight(r)
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, r)

	h := w.Header()
	what := fmt.Sprintf("%s %s from %q with %q: %d %v", r.Method, r.URL, r.RemoteAddr, r.Header, w.Code, h)
	for _, name := range []string{"Ratelimit", "Ratelimit-Policy", "Retry-After", "Cache-Control", "Content-Type"} {
		require.LessOrEqual(t, len(h[name]), 1, what)
	}
	shown := map[string]bool{}
	for _, name := range []string{"Ratelimit", "Ratelimit-Policy"} {
		names, _ := readField(t, h[name])
		for i, n := range names {
			require.NotContains(t, names[:i], n, what)
			shown[n] = true
		}
	}
	for i := range m.policies {
		if !m.guard.policies[i].shown {
			require.NotContains(t, shown, m.policies[i].Name, what)
		}
	}
	if w.Code == http.StatusAccepted {
		require.Equal(t, 1, s.ran, what)
		require.Empty(t, h["Retry-After"], what)
		m.passed(r, s, free, what)
		return
	}
	require.Zero(t, s.ran, what)
	require.Contains(t, []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusForbidden}, w.Code, what)
	require.Equal(t, "no-store", h.Get("Cache-Control"), what)
	body, wait := w.Body.String(), h.Get("Retry-After")
	if wait != "" {
		n, err := strconv.Atoi(wait)
		require.NoError(t, err, what)
		require.True(t, n >= 1 && n <= 3600, what)
	}
	switch {
	case r.Method == http.MethodHead || h["Content-Type"] == nil:
		require.Empty(t, body, what)
	case strings.HasPrefix(h.Get("Content-Type"), "text/html"):
		require.NotContains(t, body, `p0"`, what)
		require.Contains(t, body, "</html>", what)
	default:
		var problem struct {
			Status     int
			RetryAfter int      `json:"retry_after"`
			Violated   []string `json:"violated-policies"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &problem), what)
		require.Equal(t, w.Code, problem.Status, what)
		require.Equal(t, strconv.Itoa(problem.RetryAfter), max(wait, "0"), what)
		for _, name := range problem.Violated {
			require.True(t, shown[name] || m.guard.headers != HeadersDraft8, what)
		}
	}
}

// passed checks that each policy which applied was asked and had room.
func (m *mixture) passed(r *http.Request, s *seen, free bool, what string) {
	if m.guard.observe == nil {
		return
	}
	t := m.t
	require.Zero(t, s.verdict.Status, what)
	for i := range m.policies {
		p := &m.policies[i]
		o, asked := s.verdict.Of(p.Name)
		skipped := p.Skip != nil && r.URL.Path == "/skip" && len(r.Header.Get("X-Api-Key"))%2 == 0
		if p.Mode != Enforce {
			continue
		}
		require.Equal(t, !free && !skipped, asked, "%s: %s", what, p.Name)
		require.True(t, !asked || o.Allowed, what)
	}
}

func (m *mixture) end() {
	for i, v := range m.kept {
		require.Equal(m.t, m.copies[i], slices.Clone(v.Outcomes), "a Verdict that was handed out has changed")
	}
	require.Less(m.t, m.log.lines(), 60)
}

// Whatever is mixed, and whatever the store does: nobody passes uncounted, every
// refusal is well-formed, and Verdicts stay as they were handed out.
func TestMixtures(t *testing.T) {
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		m := newMixture(t, rnd)
		for range 60 {
			m.ask(m.request(rnd))
		}
		m.end()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestMixturesInParallel(t *testing.T) {
	for seed := range uint64(20) {
		m := newMixture(t, rand.New(rand.NewPCG(seed, 8)))
		var wg sync.WaitGroup
		for worker := range uint64(4) {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, worker))
				for range 50 {
					w := httptest.NewRecorder()
					m.handler.ServeHTTP(w, m.request(rnd))
					if w.Code == http.StatusInternalServerError {
						t.Error(w.Body)
					}
				}
			})
		}
		wg.Wait()
		m.end()
	}
}
