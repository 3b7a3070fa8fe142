package handler

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Exemptions do not widen.
func TestPaths(t *testing.T) {
	exempt := Paths("/healthz", "/ready/", "a//b/../c", "/hällo")
	for target, want := range map[string]bool{
		"/healthz":              true,
		"/healthz?x=1":          true,
		"/ready/":               true,
		"/a/c":                  true,
		"/h%C3%A4llo":           true,
		"/healthz/":             false,
		"/Healthz":              false,
		"/ready":                false,
		"/healthz/../login":     false,
		"/login/../healthz":     false,
		"//healthz":             false,
		"/./healthz":            false,
		"/healthz/.":            false,
		"/%68ealthz":            false,
		"/healthz%2f":           false,
		"/items/..%2fhealthz":   false,
		"/items%2f..%2fhealthz": false,
		"/healthz;x":            false,
		"/":                     false,
		"/login":                false,
	} {
		require.Equal(t, want, exempt(httptest.NewRequest("GET", target, nil)), target)
	}
	require.False(t, exempt(&http.Request{}))
	root := Paths("")
	require.True(t, root(&http.Request{URL: &url.URL{}}))
	require.True(t, root(httptest.NewRequest("GET", "/", nil)))
	require.False(t, Paths()(httptest.NewRequest("GET", "/", nil)))
}

// However a path is written, at most the limit reaches the handler, inside a
// mux and around it.
func TestPathSpellings(t *testing.T) {
	p := byIP("login", 5)
	p.Skip = Paths("/health")
	g := onMemory(t, p)
	reached := 0
	login := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ })
	caseBlind := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(strings.ToLower(r.URL.Path), "login") {
			login(w, r)
		}
	})
	h := g.Handler(caseBlind)
	for range 4 {
		for _, target := range []string{"/login", "/login/", "//login", "/./login", "/x/../login", "/Login", "/health/../login", "/health%2f..%2flogin", "/login/../health"} {
			serve(h, from(client, "POST", target))
		}
	}
	require.Equal(t, 5, reached)
}

// What is exempt is what ServeMux, an oracle that is not ours, takes to the exempt
// handler, and without a redirect.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{"/healthz", "/healthz/", "/x/../healthz", "/items/..%2fhealthz", "/%68ealthz", "//healthz", "/healthz/%2e%2e/login", "/healthz?x"} {
		f.Add(seed)
	}
	exempt := Paths("/healthz")
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.URL = u
		if !exempt(r) {
			return
		}
		mux, reached := http.NewServeMux(), ""
		for _, pattern := range []string{"/healthz", "/{any}", "/items/{id}", "/"} {
			mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) { reached = pattern })
		}
		mux.ServeHTTP(httptest.NewRecorder(), r)
		require.Equal(t, "/healthz", reached, "%q is exempt", target)
	})
}

func FuzzCleanPath(f *testing.F) {
	for _, seed := range []string{"", "a", "/a/", "/a/..", "//", "/a//b/./c/../", "/..", "/a/."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		clean := cleanPath(p)
		require.Equal(t, clean, cleanPath(clean), "%q", p)
		require.True(t, strings.HasPrefix(clean, "/"))
		require.NotContains(t, clean, "//")
		for part := range strings.SplitSeq(clean, "/") {
			require.NotEqual(t, "..", part)
			require.NotEqual(t, ".", part)
		}
	})
}
