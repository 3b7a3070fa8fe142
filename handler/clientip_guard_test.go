package handler_test

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// fiveFor is a guard of five requests an hour for each address, and its table.
func fiveFor(t testing.TB, c handler.ClientIP, allow ...netip.Prefix) (http.Handler, *memory.Store) {
	m, err := memory.New(memory.Config{})
	require.NoError(t, err)
	g, err := handler.New(handler.Config{
		Store:    m,
		ClientIP: c,
		Allow:    allow,
		Policies: []handler.Policy{{Name: "test", Limit: stores.FixedWindow(5, time.Hour), Key: handler.ByIP()}},
		Logger:   slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), m
}

// send returns the status of a request from remote with these X-Forwarded-For lines.
func send(h http.Handler, remote string, lines ...string) int {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = remote
	r.Header["X-Forwarded-For"] = lines
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// passed counts those of n requests that are let through.
func passed(n int, request func(i int) int) int {
	count := 0
	for i := range n {
		if request(i) == http.StatusOK {
			count++
		}
	}
	return count
}

// A connection more is no client more.
func TestConnectionsOfOneClient(t *testing.T) {
	h, m := fiveFor(t, handler.Direct())
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("no %s here: %v", address, err)
			continue
		}
		server := httptest.NewUnstartedServer(h)
		require.NoError(t, server.Listener.Close())
		server.Listener = listener
		server.Start()
		transport := &http.Transport{DisableKeepAlives: true}
		require.Equal(t, 5, passed(20, func(int) int {
			resp, err := (&http.Client{Transport: transport}).Get(server.URL)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			return resp.StatusCode
		}), address)
		server.Close()
	}
	require.LessOrEqual(t, m.Len(), 2)

	h, m = fiveFor(t, handler.TrustedHops(1))
	for _, chain := range []string{"203.0.113.9:%d", "[2001:db8::9]:%d", "[2001:db8:0:1::9]:%d"} {
		require.Equal(t, 5, passed(20, func(i int) int { return send(h, "192.0.2.1:1", fmt.Sprintf(chain, 1024+i)) }), chain)
	}
	require.Equal(t, 3, m.Len())
}

// A line is one client, however many addresses it has.
func TestAddressesOfOneLine(t *testing.T) {
	h, m := fiveFor(t, handler.Direct())
	require.Equal(t, 5, passed(1000, func(i int) int { return send(h, fmt.Sprintf("[2001:db8:1:2:%x::%x]:1", i, i*7)) }))
	require.Equal(t, 1, m.Len())
	for i := range 5 {
		require.Equal(t, 5, passed(6, func(int) int { return send(h, fmt.Sprintf("[2001:db8:1:%x::1]:1", 10+i)) }))
		require.Equal(t, 5, passed(6, func(int) int { return send(h, fmt.Sprintf("192.0.2.%d:1", i)) }))
	}
	require.Equal(t, 11, m.Len())
	// 6to4: one IPv4 address owns 65,536 networks of /64.
	require.Equal(t, 5, passed(1000, func(i int) int { return send(h, fmt.Sprintf("[2002:c000:201:%x::1]:1", i)) }))
	require.Equal(t, 12, m.Len())
}

// One client is one client under every spelling of his address.
func TestSpellingsOfOneAddress(t *testing.T) {
	h, m := fiveFor(t, handler.CloudRun())
	spellings := []string{"203.0.113.9", "::ffff:203.0.113.9", "::ffff:cb00:7109", "[::ffff:203.0.113.9]:80", " 203.0.113.9:1 ", "64:ff9b::203.0.113.9", "0:0:0:0:0:ffff:203.0.113.9"}
	require.Equal(t, 5, passed(35, func(i int) int { return send(h, "169.254.1.1:1", spellings[i%len(spellings)]) }))
	require.Equal(t, 1, m.Len())
}

// Two clients never share, and one never has two budgets.
func TestClientsBehindPlatforms(t *testing.T) {
	for _, c := range []struct {
		strategy handler.ClientIP
		chain    string // forged, client, load balancer
	}{
		{handler.CloudRun(), "%[1]s, %[2]s%.0[3]s"},
		{handler.GoogleLB(), "%[1]s, %[2]s, %[3]s"},
		{handler.TrustedHops(2), "%[1]s, %[2]s, %[3]s"},
		{handler.TrustedProxies(netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("35.191.0.0/16")), "%[1]s, %[2]s, %[3]s"},
	} {
		h, m := fiveFor(t, c.strategy)
		for client := range 20 {
			require.Equal(t, 5, passed(10, func(i int) int {
				return send(h, "169.254.1.1:1", fmt.Sprintf(c.chain, fmt.Sprintf("10.0.%d.%d", client, i), fmt.Sprintf("203.0.113.%d", client), fmt.Sprintf("35.191.0.%d", i)))
			}), c.strategy)
		}
		require.Equal(t, 20, m.Len(), c.strategy)
	}
}

// What can't be read is the peer's, all of it together, and apart from the
// clients that can.
func TestUnreadableChainsAreOneClient(t *testing.T) {
	texts := []string{"23189987", "unknown", ", ,", " 1.2.3.4 ", "1.2.3.4,", strings.Repeat("a", 64<<10), strings.Repeat("1.2.3.4,", 8<<10), "198.51.100.1", "", "x, y"}
	h, m := fiveFor(t, handler.TrustedHops(2))
	require.Equal(t, 5, passed(20*len(texts), func(i int) int {
		if text := texts[i%len(texts)]; i%2 == 0 {
			return send(h, "192.0.2.1:1", text)
		}
		return send(h, "192.0.2.1:1")
	}))
	require.Equal(t, 1, m.Len())
	// The client that has the peer's own address is another.
	require.Equal(t, 5, passed(20, func(int) int { return send(h, "192.0.2.9:1", "192.0.2.1, 35.191.0.1") }))
	require.Equal(t, 2, m.Len())

	strict, m := fiveFor(t, handler.TrustedHops(2).Strict())
	for _, text := range texts {
		require.Equal(t, http.StatusForbidden, send(strict, "192.0.2.1:1", text), "%.40q", text)
	}
	require.Zero(t, m.Len())
	require.Equal(t, http.StatusOK, send(strict, "192.0.2.1:1", "203.0.113.9, 35.191.0.1"))
}

// An exemption for addresses looks at the resolved one alone.
func TestAllowListIsNotReachedByHeaders(t *testing.T) {
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	for _, c := range []handler.ClientIP{handler.Direct(), handler.CloudRun(), handler.TrustedProxies(loopback)} {
		remote, chain := "203.0.113.9:1", "127.0.0.1"
		if c.String() != "direct" {
			remote, chain = "127.0.0.1:1", "127.0.0.1, 203.0.113.9" // a proxy on the same host
		}
		h, _ := fiveFor(t, c, loopback)
		require.Equal(t, 5, passed(20, func(int) int { return send(h, remote, chain) }), c)
		// No chain at all from the proxy itself, which is on the list: not proven.
		if c.String() != "direct" {
			require.Equal(t, 5, passed(20, func(int) int { return send(h, remote) }), c)
		}
	}
	h, _ := fiveFor(t, handler.Direct(), loopback)
	require.Equal(t, 20, passed(20, func(int) int { return send(h, "127.0.0.1:1", "203.0.113.9") }))
}
