package handler

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"

	"github.com/sallyport/sallyport/stores"
)

// A Proof is how a request shows that it came through the proxy whose header is to
// be believed. Without one, a header such as X-Real-Ip is the client's to write.
//
// The zero Proof is none: handler.New refuses a strategy that has it. A Proof is
// immutable and safe for concurrent use.
type Proof struct{ p *proof }

type proofKind uint8

const (
	proofSecret proofKind = iota + 1
	proofPeers
	proofNone // Unproven
)

// proof is behind a pointer so that printing a Proof shows an address of memory and
// not what is in it. Of a secret only the hash is kept.
type proof struct {
	kind   proofKind
	header string            // of the secret, canonical
	env    string            // the variable that ParseClientIP took the secret from
	sum    [sha256.Size]byte // SHA-256 of the secret
	peers  []netip.Prefix
	err    error
}

// maxSecretText bounds what is hashed of a header that anybody may send.
const maxSecretText = 1024

// OriginSecret is the proof by a header that the proxy adds to each request to the
// origin, in CloudFront "Origin custom header". The value must be long and random
// (32 characters are plenty, 1,024 the most) and the proxy must overwrite what a
// client sends under that name; CloudFront does. It is compared in constant time,
// and the header must be there exactly once. An empty value and a name that is no
// header's are reported by handler.New.
func OriginSecret(header, value string) Proof {
	p := &proof{kind: proofSecret, header: textproto.CanonicalMIMEHeaderKey(header), sum: sha256.Sum256([]byte(value))}
	switch {
	case !isHeaderName(header):
		p.err = fmt.Errorf("%w: the origin secret's header is no header name", stores.ErrInvalid)
	case !isSecretValue(value):
		p.err = fmt.Errorf("%w: the origin secret must be 1 to %d printable ASCII characters without spaces around them", stores.ErrInvalid, maxSecretText)
	}
	return Proof{p}
}

// FromPeers is the proof by the network that the connection came from: RemoteAddr
// lies in one of the prefixes, which are the proxy's own. Keep in mind that a
// provider's published ranges are shared by all its customers: anybody may point a
// distribution of his own at your origin. No prefix, an invalid one and one of /0
// are reported by handler.New.
func FromPeers(prefixes ...netip.Prefix) Proof {
	peers, err := trustedPrefixes(prefixes)
	return Proof{&proof{kind: proofPeers, peers: peers, err: err}}
}

// Unproven says that the origin can't be reached around the proxy, by means outside
// this program: a private network, a Function URL with AWS_IAM behind CloudFront's
// origin access control. Where that is not so, everybody chooses his own address.
func Unproven() Proof { return Proof{&proof{kind: proofNone}} }

func (p Proof) check() error {
	if p.p == nil {
		return errNoProof
	}
	return p.p.err
}

var errNoProof = fmt.Errorf("%w: no proof that a request came through the proxy: want OriginSecret, FromPeers or Unproven (as text :secret=HEADER,ENV_NAME or :peers=PREFIX,... or :unproven)", stores.ErrInvalid)

// shown reports whether r carries the proof. A Proof that check complains of is
// never shown.
func (p Proof) shown(r *http.Request) bool {
	if p.check() != nil {
		return false
	}
	switch p.p.kind {
	case proofSecret:
		lines := r.Header[p.p.header]
		if len(lines) != 1 || len(lines[0]) > maxSecretText {
			return false
		}
		// Hashes are compared, so that not even the secret's length can be timed.
		sum := sha256.Sum256([]byte(lines[0]))
		return subtle.ConstantTimeCompare(sum[:], p.p.sum[:]) == 1
	case proofPeers:
		peer, ok := parseAddr(r.RemoteAddr)
		return ok && inPrefixes(p.p.peers, peer)
	default:
		return true
	}
}

func isSecretValue(s string) bool {
	if s == "" || len(s) > maxSecretText || s[0] == ' ' || s[len(s)-1] == ' ' {
		return false
	}
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// isHeaderName reports whether s is a token (RFC 9110, section 5.6.2).
func isHeaderName(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '!', c == '#', c == '$', c == '%', c == '&', c == '\'', c == '*', c == '+', c == '-', c == '.', c == '^', c == '_', c == '`', c == '|', c == '~':
		default:
			return false
		}
	}
	return true
}

// trustedPrefixes checks prefixes and brings them into the form of addresses that
// parseAddr returns.
func trustedPrefixes(prefixes []netip.Prefix) ([]netip.Prefix, error) {
	if len(prefixes) == 0 {
		return nil, fmt.Errorf("%w: no prefix is trusted: want at least one such as 10.0.0.0/8", stores.ErrInvalid)
	}
	out := make([]netip.Prefix, 0, len(prefixes))
	for _, p := range prefixes {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		switch {
		case !p.IsValid():
			return nil, fmt.Errorf("%w: a trusted prefix is not valid", stores.ErrInvalid)
		case p.Addr().Is4In6():
			return nil, fmt.Errorf("%w: no address is in the prefix %s: write IPv4 prefixes as such", stores.ErrInvalid, p)
		case p.Bits() == 0:
			return nil, fmt.Errorf("%w: the prefix %s trusts everybody: want the proxies' own networks", stores.ErrInvalid, p)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

func inPrefixes(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
