package handler

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

func TestKeyStrings(t *testing.T) {
	f := func(*http.Request) string { return "" }
	for want, k := range map[string]Key{
		"":                               {},
		"ip":                             ByIP(),
		"net:24,48":                      ByNetwork(24, 48),
		"header:X-Api-Key":               ByHeader("x-api-key"),
		"header:X-Email|email":           ByHeader("X-Email").Email(),
		"cookie:sid":                     ByCookie("sid"),
		"route":                          ByRoute(),
		"func":                           ByFunc(f),
		"func|email":                     ByFunc(f).Email(),
		"everyone":                       Everyone(),
		"manual":                         Manual(),
		"join(ip,route)":                 Join(ByIP(), ByRoute()),
		"first(header:X-Api-Key,ip)":     FirstOf(ByHeader("X-Api-Key"), ByIP()),
		"join(first(cookie:a,ip),route)": Join(FirstOf(ByCookie("a"), ByIP()), ByRoute()),
	} {
		require.Equal(t, want, k.String())
	}
}

func TestBadKeys(t *testing.T) {
	for name, k := range map[string]Key{
		"zero":            {},
		"zero email":      Key{}.Email(),
		"no bits":         ByNetwork(0, 64),
		"many bits":       ByNetwork(33, 64),
		"many bits of v6": ByNetwork(24, 129),
		"header":          ByHeader("a b"),
		"no header":       ByHeader(""),
		"cookie":          ByCookie("a;b"),
		"nil function":    ByFunc(nil),
		"email of ip":     ByIP().Email(),
		"email of bad":    ByHeader("").Email(),
		"empty join":      Join(),
		"empty first":     FirstOf(),
		"join of manual":  Join(ByIP(), Manual()),
		"join of zero":    Join(ByIP(), Key{}),
		"first of bad":    FirstOf(ByHeader("a b"), ByIP()),
		"nested":          Join(FirstOf(Join())),
	} {
		_, err := New(Config{Store: newSharedStore(t), ClientIP: Direct(), Policies: []Policy{{Name: "p", Limit: stores.FixedWindow(1, time.Second), Key: k}}})
		require.ErrorIs(t, err, stores.ErrInvalid, name)
		require.ErrorContains(t, err, `policy "p"`, name)
	}
}

// No identity is no free pass, and no way to lock others out.
func TestNoIdentity(t *testing.T) {
	boom := ByFunc(func(*http.Request) string { panic("no key") })
	for name, k := range map[string]Key{
		"header": ByHeader("X-Api-Key"), "cookie": ByCookie("sid"), "func": ByFunc(func(r *http.Request) string { return r.Header.Get("X-Api-Key") }),
		"panic": boom, "first": FirstOf(ByHeader("X-Api-Key"), ByCookie("sid")), "email": ByHeader("X-Api-Key").Email(),
		"join": Join(ByRoute(), ByHeader("X-Api-Key")),
	} {
		t.Run(name, func(t *testing.T) {
			bothPaths(t, func(t *testing.T, store stores.Store) {
				p := byIP("p", 3)
				p.Key = k
				g := guardOf(t, Config{Store: store, Policies: []Policy{p}})
				without := []func(string) *http.Request{
					func(a string) *http.Request { return get(a) },
					func(a string) *http.Request { return get(a, "X-Api-Key", "", "Cookie", "sid=") },
					func(a string) *http.Request { return get(a, "X-Api-Key", " \t ", "Cookie", "sid") },
				}
				if name == "func" {
					without = without[:2] // what a function returns is taken as it is
				}
				require.Equal(t, 3, passes(t, g, 12, func(i int) *http.Request { return without[i%len(without)](client) }))
				require.Equal(t, 3, passes(t, g, 4, func(int) *http.Request { return without[0](another) }))
			})
		})
	}
}

// A made-up identity never lands in the bucket of an address, of those without
// identity, or of those without an address.
func TestNamespacesDoNotMeet(t *testing.T) {
	g := onMemory(t, Policy{Name: "p", Limit: stores.FixedWindow(1, time.Hour), Key: FirstOf(ByHeader("X-Api-Key"), ByCookie("sid"), ByHeader("B"))})
	byAddress, err := g.With(Policy{Name: "p", Limit: stores.FixedWindow(1, time.Hour), Key: FirstOf(ByIP())})
	require.NoError(t, err)
	plain, err := g.With(Policy{Name: "p", Limit: stores.FixedWindow(1, time.Hour), Key: ByIP()})
	require.NoError(t, err)
	require.True(t, byAddress.Check(get(client)).Allowed)
	require.True(t, plain.Check(get(client)).Allowed)
	requests := []*http.Request{
		get(client),
		get(client, "X-Api-Key", "203.0.113.9"),
		get(client, "Cookie", "sid=203.0.113.9"),
		get(client, "B", "203.0.113.9"),
		get(client, "X-Api-Key", "1", "X-Api-Key", "2"),
		get(client, "B", "1", "B", "2"),
		get(client, "X-Api-Key", "several"),
		get(client, "X-Api-Key", "ip"),
		get(client, "X-Api-Key", "none"),
		get(client, "X-Api-Key", "nobody"),
		get("", "X-Api-Key", "short"),
		get(""),
	}
	for i, r := range requests {
		require.True(t, g.Check(r).Allowed, i)
	}
	for i, r := range requests {
		require.False(t, g.Check(r).Allowed, i)
	}
}

func TestNoAddressAtAll(t *testing.T) {
	log := new(logBuffer)
	g := guardOf(t, Config{ClientIP: TrustedHops(2), Policies: []Policy{byIP("p", 5)}, Logger: log.logger()})
	require.Equal(t, 5, passes(t, g, 1000, func(i int) *http.Request {
		return get([]string{"", "@", "unknown", "not-an-address:80"}[i%4], "X-Forwarded-For", "junk")
	}), "all of them share one key")
	require.Contains(t, log.String(), "without any address")
	require.Less(t, log.lines(), 6)
	require.True(t, g.Check(get(client, "X-Forwarded-For", "192.0.2.1, 10.0.0.1")).Allowed)
	require.Equal(t, 5, passes(t, g, 9, func(int) *http.Request { return get("192.0.2.1:7", "X-Forwarded-For", "junk") }),
		"a peer whose chain is short is apart from the client of that address")
	require.Equal(t, 4, passes(t, g, 9, func(int) *http.Request { return get(client, "X-Forwarded-For", "192.0.2.1, 10.0.0.1") }))
}

// A line that the handler does not read buys nothing, from however
// many addresses; and what honest clients send twice harms nobody.
func TestSeveralLines(t *testing.T) {
	header, first := byIP("p", 3), byIP("f", 3)
	header.Key, first.Key = ByHeader("X-Api-Key"), FirstOf(ByHeader("X-Api-Key"), ByIP())
	for name, p := range map[string]Policy{"header": header, "first": first} {
		for order, lines := range map[string]func(junk string) []string{
			"behind": func(junk string) []string { return []string{"X-Api-Key", "mine", "X-Api-Key", junk} },
			"before": func(junk string) []string { return []string{"X-Api-Key", junk, "X-Api-Key", "mine"} },
		} {
			t.Run(name+" "+order, func(t *testing.T) {
				log := new(logBuffer)
				g := guardOf(t, Config{Policies: []Policy{p}, Logger: log.logger()})
				require.Equal(t, 3, passes(t, g, 60, func(i int) *http.Request {
					return get(fmt.Sprintf("192.0.2.%d:1", i), lines(strings.Repeat("j", i+1))...)
				}))
				require.Contains(t, log.String(), "several values")
				require.NotContains(t, log.String(), "mine")
				require.Equal(t, 3, passes(t, g, 30, func(i int) *http.Request { return get(client, lines([]string{"", "mine"}[i%2])...) }),
					"empty and equal lines don't count")
			})
		}
	}
	cookie := byIP("c", 3)
	cookie.Key = ByCookie("sid")
	g := onMemory(t, cookie)
	require.Equal(t, 3, passes(t, g, 60, func(i int) *http.Request {
		others := []string{"sid=mine; sid=" + strings.Repeat("j", i+1), "sid=mine; sid=", "sid=mine"}[i%3]
		return get(fmt.Sprintf("192.0.2.%d:1", i), "Cookie", others)
	}), "one session, from however many addresses")
	require.Equal(t, 3, passes(t, g, 30, func(i int) *http.Request {
		return get(client, "Cookie", "sid=; sid="+strings.Repeat("j", i+1))
	}), "none that the handler sees: by address")
	require.True(t, g.Check(get(another, "Cookie", "sid=1; sid=2")).Allowed)
}

func TestByHost(t *testing.T) {
	p := byIP("p", 1)
	p.Key = ByHeader("host")
	g := onMemory(t, p)
	for _, host := range []string{"a.example", "b.example"} {
		r := get(client)
		r.Host = host
		require.True(t, g.Check(r).Allowed)
		require.False(t, g.Check(r).Allowed)
	}
}

// What differs counts apart, whatever the bytes, in one call and one log line.
func TestAwkwardBytes(t *testing.T) {
	values := []string{"ab", "a b", "a\"b", `a\b`, "a/b", "a%2Fb", "{a}b", "a\x00b", "a\xffb", "a\xfeb", "a\xed\xa0\x80b", "a:b", "1:a", "a\r\nb", "a\u0301b", "áb",
		strings.Repeat("x", 600), strings.Repeat("x", 601)}
	bothPaths(t, func(t *testing.T, store stores.Store) {
		log := new(logBuffer)
		p := byIP("p", 2)
		p.Key = ByFunc(func(r *http.Request) string { return r.Header["Raw"][0] })
		g := guardOf(t, Config{Store: store, Policies: []Policy{p}, Logger: log.logger(), KeySecret: []byte("a secret of tests")})
		for _, value := range values {
			require.Equal(t, 2, passes(t, g, 4, func(int) *http.Request {
				r := get(client)
				r.Header["Raw"] = []string{value}
				return r
			}), "%q", value)
		}
		require.LessOrEqual(t, log.lines(), 1)
		if s, ok := store.(*sharedStore); ok && s.fail == nil {
			require.LessOrEqual(t, s.calls(), 3*len(values))
			for _, key := range s.keys {
				require.NoError(t, stores.Hit{Key: key, Limit: p.Limit}.Validate())
			}
		}
	})
}

// One mailbox, one budget.
func TestEmail(t *testing.T) {
	p := byIP("mail", 1)
	p.Key = ByHeader("X-Email").Email()
	g := onMemory(t, p)
	for i, value := range []string{"user@example.org", "User@Example.org", " user@example.org ", "user@example.org\t", "USER@EXAMPLE.ORG", "\u00a0user@example.org"} {
		r := get(client)
		r.Header["X-Email"] = []string{value}
		require.Equal(t, i == 0, g.Check(r).Allowed, "%q", value)
	}
	require.True(t, g.Check(get(client, "X-Email", "user+tag@example.org")).Allowed)
	require.True(t, g.Check(get(client, "X-Email", "jos\u00e9@example.org")).Allowed)
	require.False(t, g.Check(get(client, "X-Email", "JOSE\u0301@example.org")).Allowed)
	_, err := g.Take(t.Context(), "mail", 1, " ")
	require.ErrorIs(t, err, stores.ErrInvalid)
	d, err := g.Take(t.Context(), "mail", 1, "  User@EXAMPLE.org")
	require.NoError(t, err)
	require.False(t, d.Allowed)
}

func FuzzEmail(f *testing.F) {
	for _, seed := range []string{"A@b.c", "İ@x", "ǅ\u030c", " \u2003a", "\xff\xfeA", "\u1e9e", "Å\u0301"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := normalEmail(s)
		require.Equal(t, once, normalEmail(once), "%q", s)
		require.Equal(t, once, normalEmail("\t "+s+"\u00a0"))
	})
}

// Two identities never have one key, and all keys are valid.
func FuzzStoreKeys(f *testing.F) {
	f.Add("a", "b", "c", "d", "n", "m")
	f.Add("1:a", "", "", "1:a", "n", "n")
	f.Add("\x00", "a", "a", "\x00", "1:n", "n")
	f.Add(strings.Repeat("x", 500), "y", strings.Repeat("x", 499), "xy", "n", "n")
	f.Fuzz(func(t *testing.T, a, b, c, d, name1, name2 string) {
		for _, name := range []string{name1, name2} {
			if name == "" || len(name) > maxName || !printable(name) {
				return
			}
		}
		g := onMemory(t, Policy{Name: name1, Limit: stores.FixedWindow(1, time.Hour), Key: Manual()})
		other, err := g.With(Policy{Name: name2, Limit: stores.FixedWindow(9, time.Hour), Key: Manual()})
		require.NoError(t, err)
		_, hit1, err := g.hit(name1, []string{a, b})
		require.NoError(t, err)
		_, hit2, err := other.hit(name2, []string{c, d})
		require.NoError(t, err)
		require.NoError(t, hit1.Validate())
		require.NoError(t, hit2.Validate())
		require.Equal(t, a == c && b == d && name1 == name2, hit1.Key == hit2.Key)
		_, single, err := g.hit(name1, []string{a + b})
		require.NoError(t, err)
		require.NotEqual(t, hit1.Key, single.Key)
		hashed := g.keyer.Key(name1, hit1.Limit, "manual", a, b)
		require.True(t, hit1.Key == hashed || hit1.Key[0] != hashed[0], "the two forms never meet")
	})
}

// Another prefix, another counter, even where it looks like the mark of plain keys.
func TestPrefixesAreApart(t *testing.T) {
	store := onMemory(t, byIP("p", 1)).memory
	for _, prefix := range []string{"", "=", "-", "1:x", "sallyport:2"} {
		g := guardOf(t, Config{Store: store, Prefix: prefix, Policies: []Policy{byIP("p", 1)}})
		require.NotEqual(t, g.prefix[0], g.mark)
		require.True(t, g.Check(get(client)).Allowed, prefix)
		require.False(t, g.Check(get(client)).Allowed, prefix)
	}
	same := guardOf(t, Config{Store: store, Prefix: "sallyport:", Policies: []Policy{byIP("p", 1)}})
	require.False(t, same.Check(get(client)).Allowed, "the default by its name")
}

// The concrete URL chooses nothing.
func TestByRoute(t *testing.T) {
	p := byIP("p", 5)
	p.Key = Join(ByIP(), ByRoute())
	g := onMemory(t, p)
	reached := map[string]int{}
	mux := http.NewServeMux()
	for _, pattern := range []string{"/item/{id}", "GET /other"} {
		mux.Handle(pattern, g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached[pattern]++ })))
	}
	for i := range 50 {
		serve(mux, from(client, "GET", "/item/"+strings.Repeat("i", i+1)+"?x="+strings.Repeat("y", i)))
		serve(mux, from(client, "GET", "/other"))
	}
	require.Equal(t, map[string]int{"/item/{id}": 5, "GET /other": 5}, reached)
	require.LessOrEqual(t, g.memory.Len(), 2)
}

// Rules count apart by name, in two guards as in one, on every path.
func TestNamesScopeCounters(t *testing.T) {
	bothPaths(t, func(t *testing.T, store stores.Store) {
		a := guardOf(t, Config{Store: store, Policies: []Policy{byIP("a", 5)}})
		b, err := a.With(byIP("b", 2))
		require.NoError(t, err)
		require.Equal(t, 5, passes(t, a, 9, func(int) *http.Request { return get(client) }))
		require.Equal(t, 2, passes(t, b, 9, func(int) *http.Request { return get(client) }))
		again, err := b.With(byIP("a", 6))
		require.NoError(t, err)
		require.Equal(t, 1, passes(t, again, 9, func(int) *http.Request { return get(client) }), "one name, one counter; the higher quota applies at once")
	})
}
