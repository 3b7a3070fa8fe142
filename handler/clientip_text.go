package handler

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/sallyport/sallyport/stores"
)

// ParseClientIP reads a strategy as configuration writes it:
//
//	direct                                        Direct()
//	cloudrun                                      CloudRun()
//	googlelb                                      GoogleLB()
//	hops:2                                        TrustedHops(2)
//	proxies:10.0.0.0/8,2001:db8::/32              TrustedProxies(...)
//	cloudfront:secret=X-Origin-Secret,ENV_NAME    CloudFront(OriginSecret("X-Origin-Secret", os.Getenv("ENV_NAME")))
//	cloudfront:peers=192.0.2.0/24,198.51.100.7    CloudFront(FromPeers(...))
//	cloudfront:unproven                           CloudFront(Unproven())
//	header:X-Real-Ip:unproven                     HeaderAddr("X-Real-Ip", Unproven()); or secret=, peers=
//	header:X-Real-Ip                              HeaderAddr without a Proof, which New refuses: add one
//
// and " strict" after any of them for [ClientIP.Strict]. A secret is named by its
// environment variable, which must be set, so that it stays out of the
// configuration. Prefixes without a length are single addresses. The error wraps
// [stores.ErrInvalid], says what was expected, and never shows a secret.
func ParseClientIP(s string) (ClientIP, error) {
	c, err := parseClientIP(s)
	if err == nil {
		// A header alone is text that can be read. That its proof is missing is New's
		// to say, as for HeaderAddr in code.
		if err = c.check(); err == errNoProof {
			err = nil
		}
	}
	if err != nil {
		// Only the strategy's name: what follows may hold a secret in the wrong place.
		name, _, _ := strings.Cut(s, ":")
		return ClientIP{}, fmt.Errorf("client address %s: %w", quoteIP(name), err)
	}
	return c, nil
}

func parseClientIP(s string) (ClientIP, error) {
	text, strict := strings.CutSuffix(strings.TrimSpace(s), " strict")
	name, arg, hasArg := strings.Cut(strings.TrimRight(text, " "), ":")
	var c ClientIP
	var err error
	switch name {
	case "direct":
		c = Direct()
	case "cloudrun":
		c = CloudRun()
	case "googlelb":
		c = GoogleLB()
	case "hops":
		c, err = parseHops(arg)
	case "proxies":
		var prefixes []netip.Prefix
		if prefixes, err = parsePrefixes(arg); err == nil {
			c = TrustedProxies(prefixes...)
		}
	case "cloudfront":
		var p Proof
		if p, err = parseProof(arg); err == nil {
			c = CloudFront(p)
		}
	case "header":
		header, proof, given := strings.Cut(arg, ":")
		var p Proof
		if given {
			p, err = parseProof(proof)
		}
		if err == nil {
			c = HeaderAddr(header, p)
		}
	default:
		err = fmt.Errorf("%w: want one of direct, cloudrun, googlelb, cloudfront, hops, proxies, header", stores.ErrInvalid)
	}
	if err != nil {
		return ClientIP{}, err
	}
	if hasArg && c.s.kind <= ipGoogleLB {
		return ClientIP{}, fmt.Errorf("%w: %s takes nothing after it", stores.ErrInvalid, name)
	}
	if strict {
		c = c.Strict()
	}
	return c, nil
}

func parseHops(s string) (ClientIP, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return ClientIP{}, fmt.Errorf("%w: %s hops: want a whole number such as hops:2", stores.ErrInvalid, quoteIP(s))
	}
	return TrustedHops(int(n)), nil
}

func parsePrefixes(s string) ([]netip.Prefix, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil // the constructor says what is missing
	}
	var out []netip.Prefix
	for _, text := range strings.Split(s, ",") {
		text = strings.TrimSpace(text)
		p, err := netip.ParsePrefix(text)
		if err != nil {
			a, err := netip.ParseAddr(text)
			if err != nil || a.Zone() != "" {
				return nil, fmt.Errorf("%w: %s is no prefix: want one such as 10.0.0.0/8", stores.ErrInvalid, quoteIP(text))
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		out = append(out, p)
	}
	return out, nil
}

func parseProof(s string) (Proof, error) {
	kind, arg, _ := strings.Cut(s, "=")
	switch {
	case s == "unproven":
		return Unproven(), nil
	case kind == "peers":
		prefixes, err := parsePrefixes(arg)
		return FromPeers(prefixes...), err
	case kind == "secret":
		header, env, ok := strings.Cut(arg, ",")
		if !ok || !isEnvName(env) {
			return Proof{}, fmt.Errorf("%w: after secret= want a header and an environment variable, such as X-Origin-Secret,ORIGIN_SECRET", stores.ErrInvalid)
		}
		value := os.Getenv(env)
		if value == "" {
			return Proof{}, fmt.Errorf("%w: the environment variable %s, which holds the origin secret, is not set", stores.ErrInvalid, env)
		}
		p := OriginSecret(header, value)
		p.p.env = env
		return p, nil
	case s == "":
		return Proof{}, fmt.Errorf("%w: no proof that a request came through the proxy: want secret=HEADER,ENV_NAME or peers=PREFIX,... or unproven at the end", stores.ErrInvalid)
	default:
		return Proof{}, fmt.Errorf("%w: the proof was not understood: want secret=HEADER,ENV_NAME or peers=PREFIX,... or unproven", stores.ErrInvalid)
	}
}

func isEnvName(s string) bool {
	if s == "" || len(s) > 128 || (s[0] >= '0' && s[0] <= '9') {
		return false
	}
	for _, c := range []byte(s) {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// String returns the strategy as [ParseClientIP] reads it. A secret that was given
// as a value is shown as "...", and then ParseClientIP does not take the text back;
// nor does it for a strategy with a bad argument. The zero ClientIP is "".
func (c ClientIP) String() string {
	if c.s == nil {
		return ""
	}
	var b []byte
	switch s := c.s; s.kind {
	case ipDirect:
		b = append(b, "direct"...)
	case ipCloudRun:
		b = append(b, "cloudrun"...)
	case ipGoogleLB:
		b = append(b, "googlelb"...)
	case ipHops:
		b = strconv.AppendInt(append(b, "hops:"...), int64(s.hops), 10)
	case ipProxies:
		b = appendPrefixes(append(b, "proxies:"...), s.proxies)
	case ipCloudFront:
		b = s.proof.append(append(b, "cloudfront:"...))
	case ipHeader:
		b = append(append(b, "header:"...), s.header...)
		if s.proof.p != nil {
			b = append(b, ':')
		}
		b = s.proof.append(b)
	}
	if c.s.refuse {
		b = append(b, " strict"...)
	}
	return string(b)
}

func (p Proof) append(b []byte) []byte {
	if p.p == nil {
		return b
	}
	switch p.p.kind {
	case proofSecret:
		b = append(append(append(b, "secret="...), p.p.header...), ',')
		if p.p.env == "" {
			return append(b, "..."...)
		}
		return append(b, p.p.env...)
	case proofPeers:
		return appendPrefixes(append(b, "peers="...), p.p.peers)
	default:
		return append(b, "unproven"...)
	}
}

func appendPrefixes(b []byte, prefixes []netip.Prefix) []byte {
	for i, p := range prefixes {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.AppendTo(b)
	}
	return b
}

// UnmarshalText is ParseClientIP.
func (c *ClientIP) UnmarshalText(text []byte) error {
	parsed, err := ParseClientIP(string(text))
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}

// quoteIP bounds what an error repeats of a text that may be anybody's.
func quoteIP(s string) string {
	if len(s) > 64 {
		s = s[:64] + "..."
	}
	return strconv.Quote(s)
}
