package handler

import (
	"net/netip"
	"strings"
)

// maxAddrText bounds the text that is looked at as one address. The longest honest
// one is a bracketed IPv6 address with a zone and a port.
const maxAddrText = 128

var (
	// nat64 is the well-known prefix in which a translator writes IPv4 addresses
	// (RFC 6052, section 2.1).
	nat64 = netip.MustParsePrefix("64:ff9b::/96")

	// sixToFour is the prefix under which every IPv4 address owns a /48
	// (RFC 3056, section 2).
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// parseAddr reads one address in any of the spellings that servers and proxies use:
// with spaces around it, with a port, in brackets, with a zone. All spellings of one
// address give one result. Nothing else is an address: not a name, not "unknown",
// not a list.
func parseAddr(s string) (netip.Addr, bool) {
	s = strings.Trim(s, " \t")
	if s == "" || len(s) > maxAddrText {
		return netip.Addr{}, false
	}
	if s[0] == '[' {
		end := strings.IndexByte(s, ']')
		if end < 0 || (end+1 < len(s) && !isPort(s[end+1:])) {
			return netip.Addr{}, false
		}
		if s = s[1:end]; strings.IndexByte(s, ':') < 0 {
			return netip.Addr{}, false // brackets are for IPv6 alone
		}
		return parseBareAddr(s)
	}
	if first := strings.IndexByte(s, ':'); first >= 0 && first == strings.LastIndexByte(s, ':') {
		if !isPort(s[first:]) {
			return netip.Addr{}, false
		}
		s = s[:first]
	}
	return parseBareAddr(s)
}

// parseBareAddr reads an address without a port and without brackets.
func parseBareAddr(s string) (netip.Addr, bool) {
	// The zone goes before parsing: netip would keep its text, which is the
	// sender's to choose, in a table of the process.
	addr, zone, zoned := strings.Cut(s, "%")
	if zoned && (zone == "" || strings.IndexByte(addr, ':') < 0) {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return netip.Addr{}, false
	}
	return canonicalAddr(a), true
}

// isPort reports whether s is a colon and a port number.
func isPort(s string) bool {
	if len(s) < 2 || len(s) > 6 || s[0] != ':' {
		return false
	}
	n := 0
	for _, c := range []byte(s[1:]) {
		if c < '0' || c > '9' {
			return false
		}
		n = n*10 + int(c-'0')
	}
	return n <= 65535
}

// canonicalAddr gives one client one address: an IPv4 address inside an IPv6 one
// (mapped, or written by a translator) is that IPv4 address, and a zone, which is
// the name of an interface on our own side, goes.
func canonicalAddr(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.Is6() {
		return a
	}
	a = a.WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// maskAddr returns the network that stands for a: the first v4bits of an IPv4
// address, the first v6bits of an IPv6 one. A 6to4 address (2002::/16) is cut to
// /48 unless v6bits is less, because whoever has one IPv4 address has such a /48
// with its 65,536 networks of /64. It is the zero Prefix for an invalid address, and
// for bits that are out of range.
func maskAddr(a netip.Addr, v4bits, v6bits int) netip.Prefix {
	a = canonicalAddr(a)
	bits := v4bits
	if a.Is6() {
		bits = v6bits
		if bits > 48 && bits <= 128 && sixToFour.Contains(a) {
			bits = 48
		}
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
