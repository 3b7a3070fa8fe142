package handler

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// B17: what identifies a person or opens a door is in no log, store, header, body
// or error.
func TestNoSecretLeaks(t *testing.T) {
	const (
		email   = "marker.person@example.org"
		apiKey  = "marker-api-key"
		address = "203.0.113.77"
		cookie  = "marker-cookie"
		secret  = "marker-key-secret-0123456789"
	)
	bothPaths(t, func(t *testing.T, store stores.Store) {
		log, said := new(logBuffer), new(strings.Builder)
		policy := func(name string, k Key) Policy {
			return Policy{Name: name, Limit: stores.FixedWindow(2, time.Hour), Key: k}
		}
		policies := []Policy{
			policy("ip", ByIP()), policy("cookie", ByCookie("sid")), policy("key", ByHeader("X-Api-Key")),
			policy("mail", ByHeader("X-Email").Email()),
			policy("panic", ByFunc(func(r *http.Request) string { panic(r.Header.Get("X-Email")) })),
			policy("panic2", ByFunc(func(r *http.Request) string { panic(errors.New(r.Header.Get("X-Api-Key"))) })),
			policy("job", Manual()),
		}
		policies[4].LimitBy = func(r *http.Request) stores.Limit { return stores.Limit{Quota: -1} }
		g := guardOf(t, Config{
			Store: store, Policies: policies, KeySecret: []byte(secret), Logger: log.logger(),
			Observe: func(_ context.Context, v Verdict) { fmt.Fprintf(said, "%+v\n", v) },
		})
		for _, accept := range []string{"*/*", "text/html", "*/*", "text/html", "*/*"} {
			w := serve(g.Handler(ok), get(address+":80", "X-Email", email, "X-Api-Key", apiKey, "Cookie", "sid="+cookie, "Accept", accept))
			fmt.Fprintln(said, w.Result().Header, w.Body)
		}
		for _, call := range [][]string{{"ip", email}, {"key"}, {"mail", " "}, {"unknown", email}, {"ip", address, apiKey}} {
			_, err := g.Take(t.Context(), call[0], 1, call[1:]...)
			fmt.Fprintln(said, err)
			fmt.Fprintln(said, g.Reset(t.Context(), call[0], call[1:]...))
		}
		s, shared := store.(*sharedStore)
		if shared {
			s.failWith(func(context.Context, stores.Hit) error { return errStrange })
			serve(g.Handler(ok), get("203.0.113.78:80", "X-Email", email))
			s.failWith(func(context.Context, stores.Hit) error { return stores.ErrInvalid })
			fmt.Fprintln(said, serve(g.Handler(ok), get("203.0.113.79:80", "X-Email", email)))
			fmt.Fprintln(said, strings.Join(s.keys, "\n"))
		}
		all := strings.ToLower(log.String() + said.String())
		require.NotEmpty(t, log.String())
		for _, marker := range []string{email, apiKey, address, cookie, secret} {
			for _, form := range []string{
				marker, base64.StdEncoding.EncodeToString([]byte(marker))[:8], base64.RawURLEncoding.EncodeToString([]byte(marker))[:8],
				hex.EncodeToString([]byte(marker)),
			} {
				require.NotContains(t, all, strings.ToLower(form))
			}
		}
	})
}
