package handler

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

func mail(name string, k Key) Policy {
	return Policy{Name: name, Limit: stores.FixedWindow(2, time.Hour), Key: k}
}

func TestKeyValue(t *testing.T) {
	type values map[string]string
	var got values
	look := func(fields ...string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = values{}
			for _, f := range fields {
				if v, ok := KeyValue(r.Context(), f); ok {
					got[f] = v
				}
			}
			_, ok := FromContext(r.Context())
			got["verdict"] = map[bool]string{true: "there", false: ""}[ok]
			w.WriteHeader(http.StatusTeapot)
		})
	}
	all := []string{"email", "phone", "user.id"}
	two := onMemory(t, mail("a", ByForm("email").Email()), mail("b", Join(ByIP(), ByForm("phone"))))
	serve(two.Handler(look(all...)), post(formType, "email=+Ann%40Example.org&phone=1"))
	require.Equal(t, values{"email": " Ann@Example.org", "phone": "1", "verdict": ""}, got, "as it was sent")
	serve(two.Handler(look(all...)), post(formType, "email=+"))
	require.Equal(t, values{"email": " ", "verdict": ""}, got)
	serve(two.Handler(look(all...)), post(formType, "a=b"))
	require.Equal(t, values{"verdict": ""}, got)

	// Nested guards: each adds what it read, and the inner one's word holds.
	inner := onMemory(t, mail("a", ByJSON("user.id")))
	nested := onMemory(t, mail("a", FirstOf(ByForm("email"), ByJSON("email"))))
	serve(nested.Handler(inner.Handler(look(all...))), post(jsonType, `{"email":"a","user":{"id":7}}`))
	require.Equal(t, values{"email": "a", "user.id": "7", "verdict": ""}, got)

	// Beside a Verdict, and in the answer of a refused policy.
	p := mail("a", ByForm("email"))
	p.Mode = Signal
	serve(onMemory(t, p).Handler(look(all...)), post(formType, "email=a"))
	require.Equal(t, values{"email": "a", "verdict": "there"}, got)
	p = mail("a", ByForm("email"))
	p.Refused = look(all...)
	g := onMemory(t, p)
	for range 3 {
		got = nil
		serve(g.Handler(ok), post(formType, "email=a"))
	}
	require.Equal(t, values{"email": "a", "verdict": "there"}, got)

	// Skipped: nobody read it, and the body is as it was.
	p = mail("a", ByForm("email"))
	p.Skip = func(*http.Request) bool { return true }
	r := post(formType, "email=a")
	before := r.Body
	serve(onMemory(t, p).Handler(look(all...)), r)
	require.Equal(t, values{"verdict": ""}, got)
	require.Equal(t, before, r.Body)
	_, there := KeyValue(t.Context(), "email")
	require.False(t, there)
}

// What one request said is never another's.
func TestKeyValuesDoNotMix(t *testing.T) {
	g := onMemory(t, Policy{Name: "p", Limit: limitForFuzz, Key: FirstOf(ByForm("email"), ByForm("phone"))})
	type pair struct{ sent, got string }
	seen := make(chan pair, 1000)
	h := g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for range 10 {
			g.Check(post(formType, "email=other&phone=other"))
		}
		b, _ := io.ReadAll(r.Body)
		v, _ := KeyValue(r.Context(), "email")
		seen <- pair{string(b), "email=" + v}
	}))
	done := make(chan struct{})
	for i := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for j := range 100 {
				serve(h, post(formType, "email="+string(rune('a'+i))+string(rune('a'+j%26))))
			}
		}()
	}
	for range 8 {
		<-done
	}
	close(seen)
	n := 0
	for p := range seen {
		n++
		require.Equal(t, p.sent, p.got)
	}
	require.Equal(t, 800, n)
	serve(g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, ok := KeyValue(r.Context(), "email")
		require.False(t, ok)
	})), get(client))
}

// Two kinds of bodies for one field: each is read by its own key, and what neither
// reads is refused.
func TestFirstOfBodyKeys(t *testing.T) {
	store := newSharedStore(t)
	for name, k := range map[string]Key{
		"form first": FirstOf(ByForm("email"), ByJSON("email")),
		"json first": FirstOf(ByJSON("email"), ByForm("email")),
		"nested":     FirstOf(ByHeader("X-Api-Key"), FirstOf(ByForm("email")), FirstOf(ByJSON("email")), ByIP()),
		"joined":     Join(ByRoute(), FirstOf(ByForm("email"), ByJSON("email"))),
	} {
		t.Run(name, func(t *testing.T) {
			g := guardOf(t, Config{Store: store, Policies: []Policy{mail(name, k)}})
			for _, tt := range []struct {
				r      *http.Request
				status int
			}{
				{post(formType, "email=b"), 0},
				{post(jsonType, `{"email":"b"}`), 0},
				{post(formType, "a=1"), 0},
				{post(jsonType, `{}`), 0},
				{get(client), 429},
				{post("text/plain", "email=b"), 400},
				{post("", `{"email":"b"}`), 400},
				{post(jsonType, `{"email":"b","email":"c"}`), 400},
				{post(formType, "email=b&email=c"), 400},
				{withBody("/?email=c", jsonType, `{"email":"b"}`), 400},
				{post(jsonType, "email=b"), 400},
			} {
				require.Equal(t, tt.status, g.Check(tt.r).Status, "%s %v", tt.r.Header, tt.r.URL)
			}
		})
	}
	part := guardOf(t, Config{Store: store, Policies: []Policy{mail("part", FirstOf(Join(ByIP(), ByForm("email")), ByJSON("email")))}})
	require.Equal(t, 0, part.Check(post(jsonType, `{"email":"b"}`)).Status)
	require.Equal(t, 400, part.Check(post("text/plain", "email=b")).Status)
	// Without a second kind in the same FirstOf nothing is forgiven: an address is not
	// what a caller may choose in place of a mailbox.
	for _, k := range []Key{FirstOf(ByForm("email"), ByIP()), Join(ByForm("email"), ByJSON("email")), FirstOf(Join(ByIP(), ByForm("email")), ByIP())} {
		g := guardOf(t, Config{Store: store, Policies: []Policy{mail("alone", k)}})
		calls := store.calls()
		require.Equal(t, 400, g.Check(post(jsonType, `{"email":"a"}`)).Status, k)
		require.Equal(t, calls, store.calls())
	}
}

// Who leaves the field out is counted by his address, apart from those who do
// not, and never for nothing.
func TestNoBodyField(t *testing.T) {
	bothPaths(t, func(t *testing.T, store stores.Store) {
		g := guardOf(t, Config{Store: store, Policies: []Policy{mail("mail", FirstOf(ByForm("email"), ByJSON("email")))}})
		without := []func() *http.Request{
			func() *http.Request { return get(client) },
			func() *http.Request { return post(formType, "email=") },
			func() *http.Request { return post(formType, "email=%20%09") },
			func() *http.Request { return post(formType, "mail=a") },
			func() *http.Request { return post(jsonType, `{"email":null}`) },
			func() *http.Request { return post(jsonType, `{"email":"\n"}`) },
			func() *http.Request { return post("text/plain", "") },
		}
		require.Equal(t, 2, passes(t, g, 21, func(i int) *http.Request { return without[i%len(without)]() }))
		require.True(t, g.Check(post(formType, "email=a")).Allowed)
		require.True(t, g.Check(post(formType, "email=203.0.113.9")).Allowed)
		r := post(formType, "mail=a")
		r.RemoteAddr = another
		require.True(t, g.Check(r).Allowed)
	})
}

// Take meets the counter of a request with that field.
func TestTakeByField(t *testing.T) {
	g := onMemory(t, mail("form", ByForm("email").Email()))
	byJSON, err := g.With(mail("json", ByJSON("user.id")))
	require.NoError(t, err)
	for range 2 {
		d, err := g.Take(t.Context(), "form", 1, " A@example.org")
		require.NoError(t, err)
		require.True(t, d.Allowed)
		d, err = byJSON.Take(t.Context(), "json", 1, "7")
		require.NoError(t, err)
		require.True(t, d.Allowed)
	}
	require.Equal(t, 429, g.Check(post(formType, "email=a%40EXAMPLE.org")).Status)
	require.Equal(t, 429, byJSON.Check(post(jsonType, `{"user":{"id":7}}`)).Status)
	require.Equal(t, 0, byJSON.Check(post(jsonType, `{"user":{"id":8}}`)).Status)
	require.NoError(t, g.Reset(t.Context(), "form", "a@example.org"))
	require.Equal(t, 0, g.Check(post(formType, "email=a%40EXAMPLE.org")).Status)
	_, err = g.Take(t.Context(), "form", 1, " \t")
	require.ErrorIs(t, err, stores.ErrInvalid)
}

// A field is what is asked for: its policy is not shown, and its place is behind the
// caller's.
func TestBodyKeysAreTargets(t *testing.T) {
	for _, k := range []Key{ByForm("a"), ByJSON("a"), ByForm("a").Email(), Join(ByIP(), ByForm("a")), FirstOf(ByJSON("a"), ByIP())} {
		require.Equal(t, rankTarget, k.source.rank(), k)
		w := serve(onMemory(t, mail("p", k)).Handler(ok), post("", ""))
		require.Empty(t, w.Header().Values("RateLimit"), k)
	}
}

func TestHandlerOfNothing(t *testing.T) {
	g := onMemory(t, byIP("p", 1))
	for _, h := range []http.Handler{nil, http.HandlerFunc(nil)} {
		require.PanicsWithValue(t, "handler: Guard.Handler of a nil http.Handler", func() { g.Handler(h) })
	}
}

// Report refuses nobody, whatever the body: it counts for the address, and the
// handler gets all of it.
func TestReportReadsWhatItCan(t *testing.T) {
	log := new(logBuffer)
	p := mail("trial", ByForm("email"))
	p.Mode = Report
	store := newSharedStore(t)
	g := guardOf(t, Config{Store: store, Policies: []Policy{p}, BodyLimit: 10, Logger: log.logger()})
	var body string
	h := g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		body = string(b)
	}))
	keys := map[string]bool{}
	for _, sent := range []string{"email=1&email=2", "email=" + strings.Repeat("x", 1000), "%", ""} {
		for _, kind := range []string{formType, "text/plain"} {
			require.Equal(t, 200, serve(h, post(kind, sent)).Code)
			require.Equal(t, sent, body)
			keys[store.keys[len(store.keys)-1]] = true
		}
	}
	require.Len(t, keys, 1)
	require.Contains(t, log.String(), "Report mode could not read")
	require.LessOrEqual(t, log.lines(), 3)

	// A policy behind it that enforces is not pacified.
	strict := mail("strict", ByForm("email"))
	both, err := g.With(p, strict)
	require.NoError(t, err)
	calls := store.calls()
	require.Equal(t, 400, both.Check(post(formType, "%")).Status)
	require.Equal(t, calls, store.calls())
}
