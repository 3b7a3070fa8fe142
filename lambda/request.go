package lambda

import (
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/sallyport/sallyport/internal/claims"
)

const forwardedFor = "X-Forwarded-For"

// parts are what the shapes make differently of a request.
type parts struct {
	method  string
	path    string // of the route, escaped
	rawPath string // as the event has it, escaped
	query   string
	pattern string
	source  string // the platform's source address
	domain  string // Host where no header says it
	header  http.Header
	claims  claims.Lookup // of an authorizer; nil: none
}

// request makes the request of p. The body is the caller's to add.
func (p *parts) request(ctx context.Context) *http.Request {
	u := &url.URL{RawQuery: p.query}
	setPath(u, p.path)
	uri := p.rawPath
	if uri == "" {
		uri = "/"
	}
	if p.query != "" {
		uri += "?" + p.query
	}
	host := p.domain
	if lines := p.header["Host"]; len(lines) > 0 {
		host = lines[0]
		delete(p.header, "Host")
	}
	r := &http.Request{
		Method:     p.method,
		URL:        u,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     p.header,
		Body:       http.NoBody,
		Host:       host,
		RemoteAddr: remoteAddr(p.source),
		RequestURI: uri,
		Pattern:    p.pattern,
	}
	return r.WithContext(claims.With(ctx, p.claims))
}

// setBody gives r the body of an event without decoding what nobody reads. A body
// that is not the base64 it says it is fails when it is read.
func setBody(r *http.Request, body string, isBase64 bool) {
	switch {
	case body == "":
	case isBase64:
		r.Body = io.NopCloser(base64.NewDecoder(base64.StdEncoding, strings.NewReader(body)))
		r.ContentLength = -1
	default:
		r.Body = io.NopCloser(strings.NewReader(body))
		r.ContentLength = int64(len(body))
	}
}

// remoteAddr writes an address as net/http does, with a port, because handlers split
// it. What is no address stays as it is, and is one to nobody.
func remoteAddr(source string) string {
	source = strings.Trim(source, " \t")
	if a, err := netip.ParseAddr(source); err == nil {
		return net.JoinHostPort(a.String(), "0")
	}
	return source
}

// singleHeader makes one header of the spellings of each name: see the package's
// documentation for the rule.
func singleHeader(lines map[string]string) http.Header {
	h := make(http.Header, len(lines)+1) // and Cookie
	values := make([]string, 0, len(lines))
	twice := false
	for name, value := range lines {
		key := textproto.CanonicalMIMEHeaderKey(name)
		twice = twice || h[key] != nil
		values = append(values, value)
		h[key] = values[len(values)-1 : len(values) : len(values)]
	}
	if twice {
		many := make(map[string][]string, len(lines))
		for name, value := range lines {
			many[name] = []string{value}
		}
		return multiHeader(many)
	}
	return h
}

// multiHeader is singleHeader for the events that list each header's lines.
func multiHeader(lines map[string][]string) http.Header {
	names := make([]string, 0, len(lines))
	for name := range lines {
		names = append(names, name)
	}
	slices.Sort(names)
	h := make(http.Header, len(names)+1)
	chains := 0
	for _, name := range names {
		key := textproto.CanonicalMIMEHeaderKey(name)
		h[key] = append(h[key], lines[name]...)
		if key == forwardedFor {
			chains++
		}
	}
	if chains > 1 {
		delete(h, forwardedFor)
	}
	return h
}

// joinCookies makes the Cookie header of the cookies array.
func joinCookies(h http.Header, cookies []string) {
	if len(cookies) > 0 {
		h["Cookie"] = append(h["Cookie"], strings.Join(cookies, "; "))
	}
}

// decodedQuery is the query string of parameters that the platform has decoded.
func decodedQuery(many map[string][]string, single map[string]string) string {
	if len(many) > 0 {
		return url.Values(many).Encode()
	}
	if len(single) == 0 {
		return ""
	}
	values := make(url.Values, len(single))
	for name, value := range single {
		values[name] = []string{value}
	}
	return values.Encode()
}

// encodedQuery is the query string of parameters that the platform has left encoded.
func encodedQuery(many map[string][]string, single map[string]string) string {
	var pairs []string
	if len(many) > 0 {
		for name, values := range many {
			for _, value := range values {
				pairs = append(pairs, name+"="+value)
			}
		}
	} else {
		for name, value := range single {
			pairs = append(pairs, name+"="+value)
		}
	}
	// By name, and the values of a name in their order.
	slices.SortStableFunc(pairs, func(a, b string) int {
		nameA, _, _ := strings.Cut(a, "=")
		nameB, _, _ := strings.Cut(b, "=")
		return strings.Compare(nameA, nameB)
	})
	return strings.Join(pairs, "&")
}
