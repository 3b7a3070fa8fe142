package handler

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/claims"
	"github.com/sallyport/sallyport/stores"
)

func claiming(r *http.Request, name string, value any) *http.Request {
	return r.WithContext(claims.With(r.Context(), func(asked string) any {
		if asked == name {
			return value
		}
		return nil
	}))
}

func TestByClaim(t *testing.T) {
	bothPaths(t, func(t *testing.T, store stores.Store) {
		g := guardOf(t, Config{Store: store, Policies: []Policy{{Name: "p", Limit: stores.FixedWindow(2, time.Hour), Key: ByClaim("sub")}}})
		// One caller from many addresses, and many callers from one.
		for i, value := range []any{"ann", "ann", "ann", "ben", float64(7), float64(7), "7", true} {
			r := claiming(get(client), "sub", value)
			if i%2 == 1 {
				r.RemoteAddr = another
			}
			want := 0
			if i == 2 || i == 6 {
				want = 429
			}
			require.Equal(t, want, g.Check(r).Status, i)
		}
		d, err := g.Take(t.Context(), "p", 1, "ann")
		require.NoError(t, err)
		require.False(t, d.Allowed)
	})
}

// No claim, or none that is one text, is no identity: the address counts.
func TestNoClaim(t *testing.T) {
	g := onMemory(t, Policy{Name: "p", Limit: stores.FixedWindow(3, time.Hour), Key: ByClaim("sub")})
	odd := []any{nil, "", []any{"ann"}, map[string]any{"a": 1}, 0.5, 1e300, struct{}{}}
	require.Equal(t, 3, passes(t, g, 14, func(i int) *http.Request { return claiming(get(client), "sub", odd[i%len(odd)]) }))
	require.Equal(t, 0, passes(t, g, 5, func(i int) *http.Request { return get(client, "Sub", "ann", "X-Amzn-Claim", "ann") }), "no header is a claim")
	require.True(t, g.Check(claiming(get(client), "sub", "203.0.113.9")).Allowed)
	require.Equal(t, rankCaller, ByClaim("sub").source.rank())
	w := serve(g.Handler(ok), claiming(get(client), "sub", "ann"))
	require.NotEmpty(t, w.Header().Get("RateLimit"), "a claim is the caller's own")
}
