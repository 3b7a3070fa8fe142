package handler

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"
	"strings"

	"github.com/sallyport/sallyport/stores"
)

// A ClientIP is how a guard learns the address of the client: one strategy, chosen
// for the platform that the program runs on. There is no default, because a wrong
// guess lets every client choose his own address, or puts all of them into one
// bucket:
//
//	Direct          the server is reached directly; any lambda wrapper
//	CloudRun        Cloud Run under its run.app address or a mapped domain
//	GoogleLB        Cloud Run behind a Google external Application Load Balancer
//	CloudFront      CloudFront in front of anything
//	TrustedHops     a known number of proxies that each append to X-Forwarded-For
//	TrustedProxies  proxies that are known by their networks
//	HeaderAddr      a proxy that writes the address into a header of its own
//
// A request that does not look as the strategy expects (a chain that is too short,
// an entry that is no address, a missing proof) is counted under the address of the
// peer that sent it, apart from real clients; see [ClientIP.Strict] to refuse it.
// In the lambda package the peer is the source address that the platform reports.
//
// The zero ClientIP is no strategy. A ClientIP is immutable and safe for concurrent
// use.
type ClientIP struct{ s *ipStrategy }

type ipKind uint8

const (
	ipDirect ipKind = iota + 1
	ipCloudRun
	ipGoogleLB
	ipHops
	ipProxies
	ipCloudFront
	ipHeader
)

type ipStrategy struct {
	kind    ipKind
	hops    int            // ipCloudRun, ipGoogleLB, ipHops: which entry from the right
	proxies []netip.Prefix // ipProxies
	header  string         // ipCloudFront, ipHeader; canonical
	proof   Proof          // ipCloudFront, ipHeader
	refuse  bool           // Strict
	err     error          // a bad argument
}

// maxHops bounds how far a chain is walked, so that a header of a million trusted
// entries costs no more than one of thirty-two.
const maxHops = 32

const (
	forwardedFor  = "X-Forwarded-For"
	viewerAddress = "Cloudfront-Viewer-Address" // canonical for Go
)

// Direct takes the address of the peer, r.RemoteAddr, and believes no header. It is
// right where clients connect to this server without a proxy between, and in every
// wrapper of the lambda package, which puts the platform's source address there. A
// middleware in front that writes a header into RemoteAddr ("real IP") makes it the
// client's word again: place it behind the guard.
func Direct() ClientIP { return ClientIP{&ipStrategy{kind: ipDirect}} }

// CloudRun takes the rightmost entry of X-Forwarded-For, which Google's front end
// writes, whether it appends to what the client sent or replaces it. With a load
// balancer in front, use [GoogleLB] and set the service's ingress to
// internal-and-cloud-load-balancing, so that nobody comes around it.
func CloudRun() ClientIP { return ClientIP{&ipStrategy{kind: ipCloudRun, hops: 1}} }

// GoogleLB takes the second entry of X-Forwarded-For from the right: a Google
// external Application Load Balancer appends the client's address and then its own.
// What stands left of the two is the client's word.
func GoogleLB() ClientIP { return ClientIP{&ipStrategy{kind: ipGoogleLB, hops: 2}} }

// CloudFront takes CloudFront-Viewer-Address, which the origin request policy of the
// distribution must include. p shows that a request came through the distribution
// at all; best is an [OriginSecret].
func CloudFront(p Proof) ClientIP {
	return ClientIP{&ipStrategy{kind: ipCloudFront, header: viewerAddress, proof: p, err: p.check()}}
}

// HeaderAddr takes the address that a proxy writes into a header of its own, such as
// X-Real-Ip or Cf-Connecting-Ip: exactly one line with exactly one address. The
// proxy must overwrite what a client sends under that name, and p shows that a
// request came through the proxy. X-Forwarded-For and Forwarded hold lists and are
// refused by handler.New: see [TrustedHops].
func HeaderAddr(name string, p Proof) ClientIP {
	s := &ipStrategy{kind: ipHeader, header: textproto.CanonicalMIMEHeaderKey(name), proof: p, err: p.check()}
	switch {
	case !isHeaderName(name):
		s.err = fmt.Errorf("%w: the client address's header is no header name", stores.ErrInvalid)
	case s.header == forwardedFor || s.header == "Forwarded":
		s.err = fmt.Errorf("%w: %s holds a list of addresses: want TrustedHops or TrustedProxies", stores.ErrInvalid, s.header)
	case s.header == viewerAddress:
		s.err = fmt.Errorf("%w: CloudFront-Viewer-Address has a form of its own: want CloudFront", stores.ErrInvalid)
	}
	return ClientIP{s}
}

// TrustedHops takes the n-th entry of X-Forwarded-For from the right (1 to 32),
// where n is the number of proxies that append to it. Each of them must append:
// where one can be gone around, a client moves the count and chooses his address.
// Entries to the right of the n-th are not looked at, but an empty one makes the
// chain unreadable.
func TrustedHops(n int) ClientIP {
	s := &ipStrategy{kind: ipHops, hops: n}
	if n < 1 || n > maxHops {
		s.err = fmt.Errorf("%w: %d trusted hops: want 1 to %d, or Direct where no proxy appends", stores.ErrInvalid, n, maxHops)
	}
	return ClientIP{s}
}

// TrustedProxies walks from the peer along X-Forwarded-For to the left and takes the
// first address that is in none of the prefixes. A peer outside them came directly:
// its header is not read. A chain in which all are trusted, or in which an entry that
// is no address comes first, is unreadable. At most 32 entries are walked. No prefix,
// an invalid one and one of /0 are reported by handler.New.
func TrustedProxies(prefixes ...netip.Prefix) ClientIP {
	proxies, err := trustedPrefixes(prefixes)
	return ClientIP{&ipStrategy{kind: ipProxies, proxies: proxies, err: err}}
}

// Strict returns c with the rule that a request whose chain is too short, unreadable
// or without its proof is refused with 403 rather than counted under its peer.
// Health checks that come around the proxy are refused too; see [Policy.Skip]. It
// changes nothing for [Direct], which reads no chain.
func (c ClientIP) Strict() ClientIP {
	if c.s == nil {
		return c
	}
	s := *c.s
	s.refuse = true
	return ClientIP{&s}
}

func (c ClientIP) strict() bool { return c.s != nil && c.s.refuse }

func (c ClientIP) zero() bool { return c.s == nil }

// check returns the bad argument of the constructor; it wraps stores.ErrInvalid.
func (c ClientIP) check() error {
	if c.s == nil {
		return nil
	}
	return c.s.err
}

// addrState says what the address that resolve returns is worth.
type addrState uint8

const (
	addrOK    addrState = iota // the client's address
	addrShort                  // chain too short, unreadable or unproven: the peer's, invalid if there is none
	addrNone                   // no address at all
)

// resolve returns the address of the client that sent r, in the form of
// canonicalAddr.
func (c ClientIP) resolve(r *http.Request) (netip.Addr, addrState) {
	if c.s == nil {
		return netip.Addr{}, addrNone
	}
	if c.s.kind == ipDirect {
		peer, ok := parseAddr(r.RemoteAddr)
		if !ok {
			return netip.Addr{}, addrNone
		}
		return peer, addrOK
	}
	if c.s.err == nil {
		if a, ok := c.s.forwarded(r); ok {
			return a, addrOK
		}
	}
	peer, _ := parseAddr(r.RemoteAddr)
	return peer, addrShort
}

// forwarded finds the client behind the proxies.
func (s *ipStrategy) forwarded(r *http.Request) (netip.Addr, bool) {
	switch s.kind {
	case ipProxies:
		return s.pastProxies(r)
	case ipCloudFront, ipHeader:
		lines := r.Header[s.header]
		// Two lines are not the proxy's work: there is no telling whose is whose.
		if len(lines) != 1 || !s.proof.shown(r) {
			return netip.Addr{}, false
		}
		if s.kind == ipCloudFront {
			return parseViewer(lines[0])
		}
		return parseAddr(lines[0])
	default:
		return s.fromRight(r.Header[forwardedFor])
	}
}

func (s *ipStrategy) fromRight(lines []string) (netip.Addr, bool) {
	c := newChain(lines)
	for n := 1; ; n++ {
		entry, ok := c.next()
		if !ok {
			return netip.Addr{}, false
		}
		if n == s.hops {
			return parseAddr(entry)
		}
		if isBlank(entry) {
			return netip.Addr{}, false // no proxy of ours appended this
		}
	}
}

func (s *ipStrategy) pastProxies(r *http.Request) (netip.Addr, bool) {
	a, ok := parseAddr(r.RemoteAddr)
	if !ok {
		return netip.Addr{}, false // a socket without an address proves nothing
	}
	c := newChain(r.Header[forwardedFor])
	for n := 0; n <= maxHops; n++ {
		if !inPrefixes(s.proxies, a) {
			return a, true
		}
		entry, ok := c.next()
		if !ok {
			break
		}
		if a, ok = parseAddr(entry); !ok {
			break
		}
	}
	return netip.Addr{}, false
}

// parseViewer reads CloudFront's "address:port", in which an IPv6 address has no
// brackets: the last colon is the port's.
func parseViewer(s string) (netip.Addr, bool) {
	s = strings.Trim(s, " \t")
	colon := strings.LastIndexByte(s, ':')
	if colon < 0 || len(s) > maxAddrText || !isPort(s[colon:]) {
		return netip.Addr{}, false
	}
	s = s[:colon]
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		s = s[1 : len(s)-1]
	}
	return parseBareAddr(s)
}

func isBlank(s string) bool {
	for _, c := range []byte(s) {
		if c != ' ' && c != '\t' {
			return false
		}
	}
	return true
}
