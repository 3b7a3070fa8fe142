package handler

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

const testPeer = "192.0.2.77"

// ask resolves a request from testPeer. headers are "Name: value" lines.
func ask(c ClientIP, headers ...string) (string, addrState) {
	return askFrom(c, testPeer+":40000", headers...)
}

func askFrom(c ClientIP, remote string, headers ...string) (string, addrState) {
	r := &http.Request{RemoteAddr: remote, Header: http.Header{}}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	a, state := c.resolve(r)
	if !a.IsValid() {
		return "", state
	}
	return a.String(), state
}

func mustPrefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range texts {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// What a client writes into any header is never believed without a strategy
// that names the proxy.
func TestDirectBelievesNoHeader(t *testing.T) {
	names := []string{"X-Forwarded-For", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Forwarded",
		"X-Client-Ip", "Fastly-Client-Ip", "X-Cluster-Client-Ip", "Cloudfront-Viewer-Address", "X-Appengine-User-Ip", "Fly-Client-Ip"}
	for _, name := range names {
		for i := range 20 {
			got, state := ask(Direct(), fmt.Sprintf("%s: 203.0.113.%d", name, i))
			require.Equal(t, addrOK, state)
			require.Equal(t, testPeer, got)
		}
	}
}

func TestDirect(t *testing.T) {
	for _, c := range []struct {
		remote, want string
		state        addrState
	}{
		{"1.2.3.4:5", "1.2.3.4", addrOK},
		{"1.2.3.4", "1.2.3.4", addrOK},
		{"[::1]:5", "::1", addrOK},
		{"2001:db8::1", "2001:db8::1", addrOK},
		{"[::ffff:1.2.3.4]:5", "1.2.3.4", addrOK},
		{"[fe80::1%eth0]:5", "fe80::1", addrOK},
		{"", "", addrNone},
		{"@", "", addrNone},
		{"pipe", "", addrNone},
		{"test-invoke-source-ip", "", addrNone},
	} {
		got, state := askFrom(Direct(), c.remote)
		require.Equal(t, c.state, state, c.remote)
		require.Equal(t, c.want, got, c.remote)
	}
}

// Exactly the entry that the platform wrote counts, whatever stands beside it.
func TestTheEntryOfThePlatform(t *testing.T) {
	for _, c := range []struct {
		strategy ClientIP
		chain    string // %s: forged, client, lb
	}{
		{CloudRun(), "%[1]s, %[2]s"},
		{TrustedHops(1), "%[1]s, %[2]s"},
		{GoogleLB(), "%[1]s, %[2]s, %[3]s"},
		{TrustedHops(2), "%[1]s,%[2]s,%[3]s"},
		{TrustedHops(3), "%[1]s,%[2]s,%[3]s,%[3]s"},
	} {
		for _, forged := range []string{"9.9.9.9", "unknown", "", "9.9.9.9, 8.8.8.8", "::1", strings.Repeat("7.7.7.7,", 5000)} {
			for _, lb := range []string{"35.191.0.1", "35.191.0.2:99", "2600:1901::1"} {
				for _, client := range []string{"203.0.113.1", "203.0.113.2", "2001:db8::1"} {
					got, state := ask(c.strategy, "X-Forwarded-For: "+fmt.Sprintf(c.chain, forged, client, lb))
					require.Equal(t, addrOK, state)
					require.Equal(t, client, got, "%s %.40q %q", c.strategy, forged, lb)
				}
			}
		}
	}
}

// A port is never part of the client.
func TestPortsInChains(t *testing.T) {
	for i := range 20 {
		got, _ := ask(CloudRun(), fmt.Sprintf("X-Forwarded-For: 203.0.113.9:%d", 1024+i))
		require.Equal(t, "203.0.113.9", got)
		got, _ = ask(CloudRun(), fmt.Sprintf("X-Forwarded-For: [2001:db8::9]:%d", 1024+i))
		require.Equal(t, "2001:db8::9", got)
		got, _ = ask(HeaderAddr("X-Real-Ip", Unproven()), fmt.Sprintf("X-Real-Ip: 203.0.113.9:%d", 1024+i))
		require.Equal(t, "203.0.113.9", got)
	}
}

// Several header lines are one list: the first line alone is the client's.
func TestSeveralHeaderLines(t *testing.T) {
	got, state := ask(CloudRun(), "X-Forwarded-For: 9.9.9.9", "X-Forwarded-For: 203.0.113.1")
	require.Equal(t, addrOK, state)
	require.Equal(t, "203.0.113.1", got)
	got, _ = ask(GoogleLB(), "X-Forwarded-For: 9.9.9.9, 203.0.113.1", "X-Forwarded-For: 35.191.0.1")
	require.Equal(t, "203.0.113.1", got)
	got, _ = ask(TrustedProxies(mustPrefixes("192.0.2.0/24", "10.0.0.0/8")...), "X-Forwarded-For: 9.9.9.9", "X-Forwarded-For: 8.8.8.8,203.0.113.1, 10.0.0.1", "X-Forwarded-For: 10.0.0.2")
	require.Equal(t, "203.0.113.1", got)
}

// Junk, emptiness and short chains end at the peer, whatever they say.
func TestShortAndUnreadableChains(t *testing.T) {
	two := TrustedHops(2)
	for _, c := range []struct {
		strategy ClientIP
		headers  []string
	}{
		{two, nil},
		{two, []string{"X-Forwarded-For: "}},
		{two, []string{"X-Forwarded-For: 23189987"}},
		{two, []string{"X-Forwarded-For: unknown"}},
		{two, []string{"X-Forwarded-For: , ,"}},
		{two, []string{"X-Forwarded-For:  1.2.3.4 "}},
		{two, []string{"X-Forwarded-For: 1.2.3.4,"}},
		{two, []string{"X-Forwarded-For: 1.2.3.4, \t"}},
		{two, []string{"X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: "}},
		{two, []string{"X-Forwarded-For: 1.2.3.4"}},
		{two, []string{"X-Forwarded-For: unknown, 35.191.0.1"}},
		{two, []string{"X-Forwarded-For: " + strings.Repeat("x", 64<<10)}},
		{two, []string{"X-Forwarded-For: " + strings.Repeat(",", 64<<10)}},
		{two, []string{"X-Forwarded-For: " + strings.Repeat("1", 64<<10) + ", 35.191.0.1"}},
		{two, []string{"Forwarded: for=1.2.3.4, for=35.191.0.1", "X-Real-Ip: 1.2.3.4"}},
		{CloudRun(), nil},
		{CloudRun(), []string{"X-Forwarded-For: 1.2.3.4,"}},
		{GoogleLB(), []string{"X-Forwarded-For: 1.2.3.4"}},
		{CloudFront(Unproven()), nil},
		{CloudFront(Unproven()), []string{"CloudFront-Viewer-Address: 203.0.113.1"}},
		{CloudFront(Unproven()), []string{"CloudFront-Viewer-Address: 203.0.113.1:1:2"}},
		{CloudFront(Unproven()), []string{"CloudFront-Viewer-Address: 203.0.113.1:1, 203.0.113.2:2"}},
		{CloudFront(Unproven()), []string{"CloudFront-Viewer-Address: 203.0.113.1:1", "CloudFront-Viewer-Address: 203.0.113.2:2"}},
		{HeaderAddr("X-Real-Ip", Unproven()), nil},
		{HeaderAddr("X-Real-Ip", Unproven()), []string{"X-Real-Ip: me"}},
		{HeaderAddr("X-Real-Ip", Unproven()), []string{"X-Real-Ip: 1.2.3.4, 5.6.7.8"}},
		{HeaderAddr("X-Real-Ip", Unproven()), []string{"X-Real-Ip: 1.2.3.4", "X-Real-Ip: 5.6.7.8"}},
		{TrustedProxies(mustPrefixes("192.0.2.0/24")...), nil},
		{TrustedProxies(mustPrefixes("192.0.2.0/24")...), []string{"X-Forwarded-For: junk"}},
		{TrustedProxies(mustPrefixes("192.0.2.0/24")...), []string{"X-Forwarded-For: 1.2.3.4, junk"}},
		{TrustedProxies(mustPrefixes("192.0.2.0/24")...), []string{"X-Forwarded-For: 192.0.2.1, 192.0.2.2"}},
		{TrustedProxies(mustPrefixes("192.0.2.0/24")...), []string{"X-Forwarded-For: 1.2.3.4" + strings.Repeat(", 192.0.2.1", 10000)}},
	} {
		got, state := ask(c.strategy, c.headers...)
		require.Equal(t, addrShort, state, "%s %.80q", c.strategy, c.headers)
		require.Equal(t, testPeer, got, "%s %.80q", c.strategy, c.headers)

		got, state = askFrom(c.strategy, "@", c.headers...)
		require.Equal(t, addrShort, state, "%s %.80q", c.strategy, c.headers)
		require.Empty(t, got)
	}
}

func TestTrustedProxies(t *testing.T) {
	c := TrustedProxies(mustPrefixes("192.0.2.0/24", "10.0.0.0/8", "::ffff:172.16.0.0/108", "fd00::/8")...)
	for _, tc := range []struct{ remote, chain, want string }{
		{testPeer + ":1", "203.0.113.1", "203.0.113.1"},
		{testPeer + ":1", "9.9.9.9, 203.0.113.1, 10.1.1.1", "203.0.113.1"},
		{testPeer + ":1", "9.9.9.9, 203.0.113.1:9, ::ffff:10.1.1.1, [fd00::1]:80, 172.16.9.9", "203.0.113.1"},
		{testPeer + ":1", "junk, 203.0.113.1", "203.0.113.1"},
		{"[::ffff:192.0.2.1]:9", "203.0.113.1", "203.0.113.1"},
		// Whoever comes directly is himself, whatever he writes.
		{"203.0.113.200:1", "1.2.3.4", "203.0.113.200"},
		{"203.0.113.200:1", "127.0.0.1", "203.0.113.200"},
		{"203.0.113.200:1", "10.0.0.1, 192.0.2.1", "203.0.113.200"},
		{"203.0.113.200:1", "junk", "203.0.113.200"},
		// Behind a proxy on the same host, its client's own words stay left of him.
		{testPeer + ":1", "127.0.0.1, 203.0.113.1", "203.0.113.1"},
	} {
		got, state := askFrom(c, tc.remote, "X-Forwarded-For: "+tc.chain)
		require.Equal(t, addrOK, state, "%+v", tc)
		require.Equal(t, tc.want, got, "%+v", tc)
	}

	// The last entry that is walked, and the first that is not.
	inner := strings.Repeat(", 10.0.0.1", maxHops-1)
	got, state := ask(c, "X-Forwarded-For: 203.0.113.1"+inner)
	require.Equal(t, addrOK, state)
	require.Equal(t, "203.0.113.1", got)
	_, state = ask(c, "X-Forwarded-For: 203.0.113.1, 10.0.0.1"+inner)
	require.Equal(t, addrShort, state)
}

func TestCloudFrontViewerAddress(t *testing.T) {
	for value, want := range map[string]string{
		"198.51.100.10:46532":        "198.51.100.10",
		" 198.51.100.10:46532 ":      "198.51.100.10",
		"2001:db8::1:46532":          "2001:db8::1",
		"2001:db8:::443":             "2001:db8::",
		"::1:443":                    "::1",
		"2001:db8:0:0:0:0:0:1:443":   "2001:db8::1",
		"[2001:db8::1]:443":          "2001:db8::1",
		"::ffff:198.51.100.10:46532": "198.51.100.10",
		"2001:db8::1:65536":          "",
		"2001:db8::1:":               "",
		"[]:1":                       "",
		"198.51.100.10:1:2":          "",
		":1":                         "",
		"":                           "",
		"junk":                       "",
		strings.Repeat(":1", 32<<10): "",
	} {
		got, state := ask(CloudFront(Unproven()), "CloudFront-Viewer-Address: "+value)
		if want == "" {
			require.Equal(t, addrShort, state, "%.80q", value)
			continue
		}
		require.Equal(t, addrOK, state, "%q", value)
		require.Equal(t, want, got, "%q", value)
	}
}

func TestStrict(t *testing.T) {
	require.False(t, TrustedHops(2).strict())
	c := TrustedHops(2)
	require.True(t, c.Strict().strict())
	require.False(t, c.strict(), "Strict returns another strategy")
	require.False(t, ClientIP{}.Strict().strict())

	got, state := ask(c.Strict(), "X-Forwarded-For: 203.0.113.1, 35.191.0.1")
	require.Equal(t, addrOK, state)
	require.Equal(t, "203.0.113.1", got)
	_, state = ask(c.Strict())
	require.Equal(t, addrShort, state)
}

func TestZeroClientIP(t *testing.T) {
	var c ClientIP
	require.True(t, c.zero())
	require.NoError(t, c.check())
	require.Empty(t, c.String())
	got, state := ask(c, "X-Forwarded-For: 1.2.3.4")
	require.Equal(t, addrNone, state)
	require.Empty(t, got)
	require.False(t, Direct().zero())
}

// A bad argument is an error, and a strategy that has one believes nothing.
func TestBadArguments(t *testing.T) {
	all := append(mustPrefixes("0.0.0.0/0"), mustPrefixes("10.0.0.0/8")...)
	for name, c := range map[string]ClientIP{
		"no proof":              CloudFront(Proof{}),
		"no proof of a header":  HeaderAddr("X-Real-Ip", Proof{}),
		"empty secret":          CloudFront(OriginSecret("X-Origin-Secret", "")),
		"secret with a newline": CloudFront(OriginSecret("X-Origin-Secret", "a\nb")),
		"secret with spaces":    CloudFront(OriginSecret("X-Origin-Secret", " a")),
		"secret too long":       CloudFront(OriginSecret("X-Origin-Secret", strings.Repeat("a", maxSecretText+1))),
		"secret without header": CloudFront(OriginSecret("", "value")),
		"secret of a bad name":  CloudFront(OriginSecret("X Origin", "value")),
		"no peers":              CloudFront(FromPeers()),
		"zero peer":             CloudFront(FromPeers(netip.Prefix{})),
		"all peers":             CloudFront(FromPeers(all...)),
		"all peers, IPv6":       CloudFront(FromPeers(mustPrefixes("::/0")...)),
		"all peers, mapped":     CloudFront(FromPeers(mustPrefixes("::ffff:0.0.0.0/96")...)),
		"more than the mapped":  CloudFront(FromPeers(mustPrefixes("::ffff:0.0.0.0/90")...)),
		"header without a name": HeaderAddr("", Unproven()),
		"header with a colon":   HeaderAddr("X-Real-Ip:", Unproven()),
		"list header":           HeaderAddr("x-forwarded-for", Unproven()),
		"Forwarded":             HeaderAddr("forwarded", Unproven()),
		"viewer address":        HeaderAddr("CloudFront-Viewer-Address", Unproven()),
		"hops 0":                TrustedHops(0),
		"hops -1":               TrustedHops(-1),
		"hops 33":               TrustedHops(maxHops + 1),
		"no proxies":            TrustedProxies(),
		"all proxies":           TrustedProxies(all...),
		"strict keeps it":       TrustedHops(0).Strict(),
	} {
		require.ErrorIs(t, c.check(), stores.ErrInvalid, name)
		require.False(t, c.zero(), name)
		got, state := ask(c, "X-Forwarded-For: 1.2.3.4, 1.2.3.4", "X-Real-Ip: 1.2.3.4",
			"CloudFront-Viewer-Address: 1.2.3.4:5", "X-Origin-Secret: value", "X-Origin-Secret: ")
		require.Equal(t, addrShort, state, name)
		require.Equal(t, testPeer, got, name)
	}
	for _, c := range []ClientIP{Direct(), CloudRun(), GoogleLB(), TrustedHops(1), TrustedHops(maxHops),
		CloudFront(Unproven()), HeaderAddr("x-real-ip", OriginSecret("x-origin-secret", "v")), TrustedProxies(mustPrefixes("10.0.0.0/8")...)} {
		require.NoError(t, c.check(), c.String())
	}
}

// naiveChain is what chain does, by joining everything.
func naiveChain(lines []string) []string {
	if len(lines) == 0 {
		return nil
	}
	entries := strings.Split(strings.Join(lines, ","), ",")
	for i, j := 0, len(entries)-1; i < j; i, j = i+1, j-1 {
		entries[i], entries[j] = entries[j], entries[i]
	}
	return entries
}

func FuzzChain(f *testing.F) {
	f.Add("1.2.3.4, 5.6.7.8\n9.9.9.9", uint8(2))
	f.Add("", uint8(1))
	f.Add(",\n\n,,1.2.3.4:5,[::1]:2", uint8(1))
	f.Add("a", uint8(3))
	f.Fuzz(func(t *testing.T, text string, hops uint8) {
		lines := strings.Split(text, "\n")
		want := naiveChain(lines)
		var got []string
		for c := newChain(lines); ; {
			entry, ok := c.next()
			if !ok {
				break
			}
			got = append(got, entry)
		}
		require.Equal(t, want, got)

		n := int(hops)%maxHops + 1
		r := &http.Request{RemoteAddr: testPeer + ":1", Header: http.Header{"X-Forwarded-For": lines}}
		addr, state := TrustedHops(n).resolve(r)
		expected := netip.Addr{}
		if len(want) >= n {
			readable := true
			for _, e := range want[:n-1] {
				readable = readable && strings.Trim(e, " \t") != ""
			}
			if readable {
				expected, _ = parseAddr(want[n-1])
			}
		}
		if expected.IsValid() {
			require.Equal(t, addrOK, state)
			require.Equal(t, expected, addr)
		} else {
			require.Equal(t, addrShort, state)
			require.Equal(t, testPeer, addr.String())
		}

		// What a client puts before the walked entries changes nothing.
		if state == addrOK {
			r.Header["X-Forwarded-For"] = append([]string{"6.6.6.6, forged"}, lines...)
			again, _ := TrustedHops(n).resolve(r)
			require.Equal(t, addr, again)
		}
		trusted := TrustedProxies(mustPrefixes("192.0.2.0/24", "10.0.0.0/8")...)
		r.Header["X-Forwarded-For"] = lines
		addr, state = trusted.resolve(r)
		if state == addrOK {
			require.False(t, inPrefixes(trusted.s.proxies, addr))
		} else {
			require.Equal(t, testPeer, addr.String())
		}
	})
}
