package handler

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// A preflight is free, so whatever gets work out of a handler must not look
// like one: a body for a handler that does not look at the method, a header for a
// method override behind the guard.
func TestForgedPreflightsCount(t *testing.T) {
	for name, forge := range map[string]func(r *http.Request){
		"body": func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("email=x")), 7
		},
		"chunked body":      func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("email=x")), -1 },
		"override":          func(r *http.Request) { r.Header.Set("X-HTTP-Method-Override", "POST") },
		"override, short":   func(r *http.Request) { r.Header.Set("X-HTTP-Method", "POST") },
		"override, other":   func(r *http.Request) { r.Header.Set("X-Method-Override", "POST") },
		"override, empty":   func(r *http.Request) { r.Header.Set("X-HTTP-Method-Override", "") },
		"no origin":         func(r *http.Request) { r.Header.Del("Origin") },
		"empty origin":      func(r *http.Request) { r.Header.Set("Origin", "") },
		"no asked method":   func(r *http.Request) { r.Header.Del("Access-Control-Request-Method") },
		"the asked method":  func(r *http.Request) { r.Method = http.MethodPost },
		"lower case method": func(r *http.Request) { r.Method = "options" },
	} {
		t.Run(name, func(t *testing.T) {
			bothPaths(t, func(t *testing.T, store stores.Store) {
				g := guardOf(t, Config{Store: store, Policies: []Policy{byIP("p", 2)}})
				require.Equal(t, 2, passes(t, g, 50, func(int) *http.Request {
					r := preflight()
					forge(r)
					return r
				}))
				require.True(t, g.Check(preflight()).Allowed, "his browser may still ask")
			})
		})
	}
}

func preflight() *http.Request {
	return from(client, "OPTIONS", "/", "Origin", "https://a.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,x-http-method-override")
}

// The same on a real server, which is what tells the length of a body.
func TestPreflightsOnTheWire(t *testing.T) {
	reached := 0
	s := httptest.NewServer(onMemory(t, byIP("p", 1)).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ })))
	defer s.Close()
	ask := func(body io.Reader) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, s.URL, body)
		require.NoError(t, err)
		r.Header.Set("Origin", "https://a.example")
		r.Header.Set("Access-Control-Request-Method", "POST")
		response, err := s.Client().Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	for range 10 {
		require.Equal(t, http.StatusOK, ask(nil))
	}
	require.Equal(t, http.StatusOK, ask(strings.NewReader("email=x")))
	for range 10 {
		require.Equal(t, http.StatusTooManyRequests, ask(strings.NewReader("email=x")))
		require.Equal(t, http.StatusTooManyRequests, ask(io.MultiReader(strings.NewReader("chunked"))))
		require.Equal(t, http.StatusOK, ask(http.NoBody))
	}
	require.Equal(t, 21, reached)
}
