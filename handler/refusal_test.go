package handler

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// exhausted is a guard whose one client has no budget left.
func exhausted(t *testing.T, cfg Config) http.Handler {
	t.Helper()
	if cfg.Policies == nil {
		cfg.Policies = []Policy{byIP("contact-form", 1)}
	}
	g := guardOf(t, cfg)
	require.True(t, g.Check(get(client)).Allowed)
	return g.Handler(ok)
}

func TestProblemDocument(t *testing.T) {
	w := serve(exhausted(t, Config{}), get(client))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "Accept", w.Header().Get("Vary"))
	require.JSONEq(t, `{
		"type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title": "Too Many Requests",
		"status": 429,
		"detail": "Please try again in 10 minutes.",
		"violated-policies": ["contact-form"],
		"retry_after": 600
	}`, w.Body.String())
}

func TestProblemQuotesNames(t *testing.T) {
	name := "a\"b\\c</script>&~ "
	w := serve(exhausted(t, Config{Policies: []Policy{byIP(name, 1)}}), get(client))
	var problem map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &problem))
	require.Equal(t, []any{name}, problem["violated-policies"])
}

func TestPage(t *testing.T) {
	w := serve(exhausted(t, Config{Policies: []Policy{byIP("<secret>", 1)}}), get(client, "Accept", "text/html,*/*;q=0.8"))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	body := w.Body.String()
	for _, part := range []string{
		"<!doctype html>", `<html lang="en">`, `<meta charset="utf-8">`, "<title>Too many requests</title>", `name="viewport"`,
		"<h1>Too many requests</h1>", "<main>", `<p role="alert">Please try again in 10 minutes.</p>`,
	} {
		require.Equal(t, 1, strings.Count(body, part), part)
	}
	// Nothing of the site's, nothing that runs, nothing that is fetched.
	for _, part := range []string{"secret", "<script", "<link", "<img", "javascript:", " on", "url(", "@import", "src=", "href=", "//", "600", "quota", "application"} {
		require.NotContains(t, body, part)
	}
}

func TestHeadHasNoBody(t *testing.T) {
	for _, accept := range []string{"", "text/html"} {
		w := serve(exhausted(t, Config{}), from(client, http.MethodHead, "/", "Accept", accept))
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "600", w.Header().Get("Retry-After"))
		require.Empty(t, w.Body.Bytes())
	}
}

// What outer layers set for any answer survives; what described another
// body, or lets a cache keep this one, does not.
func TestOuterHeaders(t *testing.T) {
	kept := http.Header{
		"Access-Control-Allow-Origin":   {"https://a.example"},
		"Access-Control-Expose-Headers": {"Retry-After"},
		"Strict-Transport-Security":     {"max-age=1"},
		"Content-Security-Policy":       {"default-src 'none'"},
		"Set-Cookie":                    {"a=1", "b=2"},
		"X-Request-Id":                  {"7"},
	}
	stale := http.Header{
		"Etag": {`"x"`}, "Last-Modified": {"then"}, "Content-Length": {"9999"}, "Content-Encoding": {"gzip"},
		"Content-Range": {"bytes 0-1/2"}, "Content-Disposition": {"attachment"}, "Expires": {"tomorrow"}, "Age": {"3"},
		"Cdn-Cache-Control": {"max-age=300"}, "Surrogate-Control": {"max-age=300"}, "Vercel-Cdn-Cache-Control": {"max-age=300"},
		"X-Accel-Expires": {"300"}, "Edge-Control": {"max-age=300"},
		// As some write them past http.Header's methods, for a client that minds the case.
		"ETag": {`"x"`}, "content-length": {"5"}, "cache-control": {"public"}, "CDN-Cache-Control": {"public"}, "content-type": {"text/css"}, "retry-after": {"1"},
	}
	inner := exhausted(t, Config{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, set := range []http.Header{kept, stale} {
			for name, values := range set {
				w.Header()[name] = append([]string(nil), values...)
			}
		}
		w.Header().Set("Cache-Control", "public, max-age=300")
		w.Header().Set("Content-Type", "text/css")
		w.Header().Set("Vary", "Origin")
		w.Header().Set("Retry-After", "1")
		inner.ServeHTTP(w, r)
	})
	w := serve(h, get(client))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	for name, values := range kept {
		require.Equal(t, values, w.Header()[name], name)
	}
	for name := range stale {
		require.NotContains(t, w.Header(), name)
	}
	require.Equal(t, []string{"no-store"}, w.Header().Values("Cache-Control"))
	require.Equal(t, []string{"application/problem+json"}, w.Header().Values("Content-Type"))
	require.Equal(t, []string{"Origin", "Accept"}, w.Header().Values("Vary"))
	require.Equal(t, []string{"600"}, w.Header().Values("Retry-After"))

	w = serve(h, get(another))
	require.Equal(t, "public, max-age=300", w.Header().Get("Cache-Control"), "an allowed answer is left alone")
	require.NotEmpty(t, w.Header().Get("Etag"))
}

// No spelling of a name lets a header stand twice: a second Content-Length would break
// the connection, a second Cache-Control let a cache keep the refusal.
func TestOddSpellingsOnTheWire(t *testing.T) {
	inner := onMemory(t, byIP("p", 1)).Handler(ok)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.Header()["content-length"] = []string{"5"}
			w.Header()["cache-control"] = []string{"public, max-age=300"}
			w.Header()["content-type"] = []string{"text/css"}
			w.Header()["retry-after"] = []string{"1"}
		}
		inner.ServeHTTP(w, r)
	}))
	defer s.Close()
	first, err := s.Client().Get(s.URL)
	require.NoError(t, err)
	require.NoError(t, first.Body.Close())
	for range 3 {
		response, err := s.Client().Post(s.URL, "text/plain", http.NoBody)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.True(t, json.Valid(body), "%s", body)
		require.Equal(t, []string{"no-store"}, response.Header.Values("Cache-Control"))
		require.Equal(t, []string{"application/problem+json"}, response.Header.Values("Content-Type"))
		require.Equal(t, []string{"600"}, response.Header.Values("Retry-After"))
	}
}

func TestVary(t *testing.T) {
	for _, tt := range []struct{ old, want []string }{
		{nil, []string{"Accept"}},
		{[]string{"Origin, accept"}, []string{"Origin, accept"}},
		{[]string{"*"}, []string{"*"}},
		{[]string{"Origin", "Accept-Encoding"}, []string{"Origin", "Accept-Encoding", "Accept"}},
	} {
		h := http.Header{"Vary": tt.old}
		addVary(h)
		require.Equal(t, tt.want, h["Vary"])
	}
}

func TestDecorateHasTheLastWord(t *testing.T) {
	decorate := func(h http.Header, r *http.Request) {
		h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		h.Set("Content-Type", "application/json")
	}
	h := exhausted(t, Config{Decorate: decorate})
	w := serve(h, get(client, "Origin", "https://a.example"))
	require.Equal(t, "https://a.example", w.Header().Get("Access-Control-Allow-Origin"))
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.Empty(t, serve(h, get(another, "Origin", "https://a.example")).Header().Get("Access-Control-Allow-Origin"))
}

func TestRefusedWritesItsOwnAnswer(t *testing.T) {
	var kept []Verdict
	p := byIP("p", 1)
	p.Refused = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, ok := FromContext(r.Context())
		require.True(t, ok)
		kept = append(kept, v)
		require.Equal(t, "600", w.Header().Get("Retry-After"))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		require.NotEmpty(t, w.Header().Get("RateLimit"))
		require.Empty(t, w.Header().Get("Content-Type"))
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("later"))
	})
	g := onMemory(t, p, byIP("q", 1000))
	h := g.Handler(ok)
	serve(h, get(client))
	w := serve(h, get(client))
	require.Equal(t, http.StatusTeapot, w.Code)
	require.Equal(t, "later", w.Body.String())
	for range 100 {
		serve(h, get(another)) // what is pooled is used again
	}
	require.Equal(t, http.StatusTooManyRequests, kept[0].Status)
	require.Equal(t, "p", kept[0].Outcomes[0].Policy)
	require.NoError(t, kept[0].Reset(t.Context(), "p"))
	require.Equal(t, http.StatusOK, serve(h, get(client)).Code)
}

// Frameworks that have no http.Handler use Check and Refuse.
func TestCheckAndRefuse(t *testing.T) {
	g := onMemory(t, byIP("p", 1))
	v := g.Check(get(client))
	require.True(t, v.Allowed)
	require.Zero(t, v.RetryAfter())
	v = g.Check(get(client))
	require.Equal(t, 10*time.Minute, v.RetryAfter().Round(time.Second))
	w := httptest.NewRecorder()
	v.SetHeaders(w.Header())
	v.Refuse(w, get(client))
	require.Equal(t, []string{`"p";r=0;t=600`}, w.Header().Values("RateLimit"))
	requireSane(t, w.Header(), w.Body.Bytes(), 600)

	signal := byIP("s", 1)
	signal.Mode = Signal
	g = onMemory(t, signal)
	g.Check(get(client))
	v = g.Check(get(client))
	require.False(t, v.Allowed)
	require.Zero(t, v.Status)
	w = httptest.NewRecorder()
	v.Refuse(w, get(client))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "600", w.Header().Get("Retry-After"))
	require.False(t, strings.Contains(w.Body.String(), "violated"))
}

// Statuses that other checks of a guard may give are answered too.
func TestOtherStatuses(t *testing.T) {
	for status, title := range map[int]string{400: "Bad Request", 413: "Request Entity Too Large"} {
		for _, accept := range []string{"*/*", "text/html"} {
			w := httptest.NewRecorder()
			Verdict{Status: status}.Refuse(w, get(client, "Accept", accept))
			require.Equal(t, status, w.Code)
			require.Contains(t, w.Body.String(), title)
			require.Empty(t, w.Header().Get("Retry-After"))
		}
	}
}

func TestDelayedBlockIsTold(t *testing.T) {
	v := Verdict{Status: http.StatusTooManyRequests, detail: &detail{guard: onMemory(t, byIP("p", 1)), refusing: -1}}
	require.Zero(t, v.RetryAfter())
	o := Outcome{Limit: stores.FixedWindow(1, time.Minute).BlockFor(time.Hour), Decision: stores.Decision{RetryAfter: 59*time.Minute + 1}}
	require.Equal(t, 59*time.Minute+15*time.Second, quarters(o.RetryAfter, o.Limit.Window))
}
