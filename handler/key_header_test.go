package handler

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// What a server takes for one credential or host is one identity, also for Take.
func TestSpellingsOfOneValue(t *testing.T) {
	for name, tt := range map[string]struct {
		one, others []string
	}{
		"Authorization": {
			[]string{"Bearer aB3=", "bearer aB3=", "BEARER aB3=", "bEARER   aB3=", " Bearer  aB3= ", "beareR aB3="},
			[]string{"Bearer ab3=", "Basic aB3=", "BeareraB3=", "Bearer", "aB3=", "Bearer aB3= x", "Bea rer aB3="},
		},
		"Proxy-Authorization": {[]string{"Basic YTpi", "BASIC  YTpi"}, []string{"Basic ytpi"}},
		"Host": {
			[]string{"a.example", "A.Example", "a.example.", "a.example:80", "A.EXAMPLE.:65535", "a.example:"},
			[]string{"b.example", "a.example:65536", "a.example:x", "a..example", "[::1]", "[::2]:80"},
		},
		"X-Api-Key": {[]string{"Bearer  a", " Bearer  a\t"}, []string{"Bearer a", "bearer  a", "A:80"}},
	} {
		t.Run(name, func(t *testing.T) {
			bothPaths(t, func(t *testing.T, store stores.Store) {
				p := byIP("p", 3)
				p.Key = ByHeader(name)
				g := guardOf(t, Config{Store: store, Policies: []Policy{p}})
				request := func(value string) *http.Request {
					r := get(client)
					if name == "Host" {
						r.Host = value
					} else {
						r.Header.Set(name, value)
					}
					return r
				}
				require.Equal(t, 3, passes(t, g, 4*len(tt.one), func(i int) *http.Request { return request(tt.one[i%len(tt.one)]) }))
				for _, spelling := range tt.one {
					d, err := g.Take(t.Context(), "p", 1, spelling)
					require.NoError(t, err)
					require.False(t, d.Allowed, "%q", spelling)
				}
				for _, other := range tt.others {
					require.Equal(t, 3, passes(t, g, 4, func(int) *http.Request { return request(other) }), "%q", other)
				}
				if name != "Host" { // two lines that mean the same are one
					require.Equal(t, 0, passes(t, g, 4, func(int) *http.Request {
						r := request(tt.one[0])
						r.Header.Add(name, tt.one[1])
						return r
					}))
				}
			})
		})
	}
}

func FuzzHeaderValues(f *testing.F) {
	for _, seed := range []string{"Bearer  x", "a.example.:80", "[::1]:1", "::1", ":", " ", "a b c", "é. "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, h := range []headerText{"Host", "Authorization", "X-Api-Key"} {
			once := h.normal(s)
			if h != "Host" { // of which "a.." and "a:1:2" lose one end at a time
				require.Equal(t, once, h.normal(once), "%s %q", h, s)
			}
			require.Equal(t, once, h.normal(" "+s+"\t"), "%s %q", h, s)
		}
	})
}
