package handler

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Spellings of one address, and those in which peers of this kit were evaded.
func TestParseAddr(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"1.2.3.4", "1.2.3.4"},
		{" 1.2.3.4 ", "1.2.3.4"},
		{"\t1.2.3.4", "1.2.3.4"},
		{"1.2.3.4:5", "1.2.3.4"},
		{"1.2.3.4:0", "1.2.3.4"},
		{"1.2.3.4:65535", "1.2.3.4"},
		{"::ffff:1.2.3.4", "1.2.3.4"},
		{"::ffff:102:304", "1.2.3.4"},
		{"::FFFF:1.2.3.4", "1.2.3.4"},
		{"[::ffff:1.2.3.4]", "1.2.3.4"},
		{"[::ffff:1.2.3.4]:80", "1.2.3.4"},
		{"64:ff9b::1.2.3.4", "1.2.3.4"},
		{"[64:ff9b::102:304]:443", "1.2.3.4"},
		{"64:ff9b:1::1.2.3.4", "64:ff9b:1::102:304"},
		{"2001:db8::1.2.3.4", "2001:db8::102:304"},
		{"2001:db8::9", "2001:db8::9"},
		{"2001:DB8:0:0:0:0:0:9", "2001:db8::9"},
		{"[2001:db8::9]", "2001:db8::9"},
		{"[2001:db8::9]:1", "2001:db8::9"},
		{"::1", "::1"},
		{"[::1]:5", "::1"},
		{"::", "::"},
		{"fe80::1%eth0", "fe80::1"},
		{"[fe80::1%eth0]:1", "fe80::1"},
		{"[fe80::1%25eth0]:1", "fe80::1"},
		{"::ffff:1.2.3.4%eth0", "1.2.3.4"},

		{"", ""},
		{"  ", ""},
		{"@", ""},
		{"unknown", ""},
		{"_hidden", ""},
		{"23189987", ""},
		{"IP", ""},
		{"test-invoke-source-ip", ""},
		{"localhost", ""},
		{"localhost:80", ""},
		{"1.2.3", ""},
		{"1.2.3.4.5", ""},
		{"1.2.3.256", ""},
		{"01.2.3.4", ""},
		{"0x1.2.3.4", ""},
		{"1.2.3.4:", ""},
		{"1.2.3.4:x", ""},
		{"1.2.3.4:-1", ""},
		{"1.2.3.4:+1", ""},
		{"1.2.3.4:65536", ""},
		{"1.2.3.4:000001", ""},
		{"1.2.3.4 5.6.7.8", ""},
		{"1.2.3.4, 5.6.7.8", ""},
		{"1.2.3.4%eth0", ""},
		{"fe80::1%", ""},
		{"[1.2.3.4]", ""},
		{"[1.2.3.4]:80", ""},
		{"[::1", ""},
		{"::1]", ""},
		{"[::1]x", ""},
		{"[::1]:", ""},
		{"[::1]80", ""},
		{"[[::1]]", ""},
		{"[]", ""},
		{"[]:80", ""},
		{":", ""},
		{":80", ""},
		{"\"[::1]:80\"", ""},
		{"for=1.2.3.4", ""},
		{"1.2.3.4\x00", ""},
		{"1.2.3.4\n", ""},
		{"١.2.3.4", ""},
		{"fe80::1%" + strings.Repeat("z", maxAddrText), ""},
		{strings.Repeat("1", 64<<10), ""},
	} {
		a, ok := parseAddr(c.in)
		require.Equal(t, c.want != "", ok, "%.80q", c.in)
		if ok {
			require.Equal(t, c.want, a.String(), "%.80q", c.in)
		} else {
			require.False(t, a.IsValid(), "%.80q", c.in)
		}
	}
}

func TestMaskAddr(t *testing.T) {
	for _, c := range []struct {
		addr   string
		v4, v6 int
		want   string
	}{
		{"1.2.3.4", 32, 64, "1.2.3.4/32"},
		{"::ffff:1.2.3.4", 32, 64, "1.2.3.4/32"},
		{"64:ff9b::102:304", 32, 64, "1.2.3.4/32"},
		{"1.2.3.4", 24, 64, "1.2.3.0/24"},
		{"1.2.3.4", 0, 64, "0.0.0.0/0"},
		{"2001:db8:1:2:3:4:5:6", 32, 64, "2001:db8:1:2::/64"},
		{"2001:db8:1:2:3:4:5:6%eth0", 32, 64, "2001:db8:1:2::/64"},
		{"2001:db8:1:2:3:4:5:6", 32, 128, "2001:db8:1:2:3:4:5:6/128"},
		{"2001:db8:1:2:3:4:5:6", 32, 48, "2001:db8:1::/48"},
		{"2002:102:304:1:2:3:4:5", 32, 64, "2002:102:304::/48"},
		{"2002:102:304:ffff::", 32, 128, "2002:102:304::/48"},
		{"2002:102:304:1::", 32, 48, "2002:102:304::/48"},
		{"2002:102:304:1::", 32, 32, "2002:102::/32"},
		{"2003::1", 32, 64, "2003::/64"},
		{"1.2.3.4", 33, 64, ""},
		{"1.2.3.4", -1, 64, ""},
		{"2001:db8::1", 32, 129, ""},
		{"2002:102:304:1::", 32, 129, ""},
		{"2002:102:304:1::", 32, -1, ""},
	} {
		p := maskAddr(netip.MustParseAddr(c.addr), c.v4, c.v6)
		if c.want == "" {
			require.False(t, p.IsValid(), "%+v", c)
			continue
		}
		require.Equal(t, c.want, p.String(), "%+v", c)
	}
	require.Equal(t, netip.Prefix{}, maskAddr(netip.Addr{}, 32, 64))
}

// Whoever has one line has one bucket; neighbours have their own.
func TestMaskAddrGroups(t *testing.T) {
	base := netip.MustParseAddr("2001:db8:1:2::").As16()
	groups := map[netip.Prefix]int{}
	for i := range 1000 {
		a := base
		a[8], a[14], a[15] = byte(i*37), byte(i>>8), byte(i)
		groups[maskAddr(netip.AddrFrom16(a), 32, 64)]++
	}
	require.Len(t, groups, 1)
	for i := range 5 {
		a := base
		a[7] = byte(10 + i)
		groups[maskAddr(netip.AddrFrom16(a), 32, 64)]++
	}
	require.Len(t, groups, 6)
	for i := range 5 {
		groups[maskAddr(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 32, 64)]++
	}
	require.Len(t, groups, 11)
}

func FuzzParseAddr(f *testing.F) {
	for _, s := range []string{"1.2.3.4", "1.2.3.4:5", "[::1]:5", "::ffff:1.2.3.4", "64:ff9b::1", "fe80::1%eth0", "unknown", "[", ":", "%", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, ok := parseAddr(s)
		require.Equal(t, ok, a.IsValid())
		if !ok {
			return
		}
		require.Empty(t, a.Zone())
		require.False(t, a.Is4In6())
		require.Equal(t, a, canonicalAddr(a))
		// Every spelling of the result is the result.
		spellings := []string{a.String(), " " + a.String() + "\t", netip.AddrPortFrom(a, 443).String()}
		if a.Is4() {
			spellings = append(spellings, "::ffff:"+a.String(), "[::ffff:"+a.String()+"]:1", "64:ff9b::"+a.String())
		} else {
			spellings = append(spellings, "["+a.String()+"]", a.StringExpanded(), a.String()+"%eth0", strings.ToUpper(a.String()))
		}
		for _, spelling := range spellings {
			b, ok := parseAddr(spelling)
			require.True(t, ok, "%q", spelling)
			require.Equal(t, a, b, "%q", spelling)
		}
		// What netip reads alone is read alike.
		if b, err := netip.ParseAddr(s); err == nil {
			require.Equal(t, canonicalAddr(b), a)
		}
		if p := maskAddr(a, 32, 64); true {
			require.True(t, p.IsValid() && p.Contains(a))
			require.Equal(t, p, maskAddr(p.Addr(), 32, 64))
		}
	})
}
