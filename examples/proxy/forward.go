package main

import (
	"net"
	"net/http"
	"net/http/httputil"
	"strings"

	"github.com/sallyport/sallyport/handler"
)

// Fields that a service believes because only a proxy should write them. A client's own
// are taken away.
var forwarding = map[string]bool{
	"forwarded": true, "x-forwarded": true, "x-forwarded-for": true, "x-forwarded-host": true, "x-forwarded-proto": true,
	"x-forwarded-port": true, "x-forwarded-server": true, "x-forwarded-scheme": true, "x-forwarded-ssl": true,
	"x-forwarded-prefix": true, "x-forwarded-by": true, "forwarded-for": true, "x-real-ip": true, "x-client-ip": true,
	"client-ip": true, "x-cluster-client-ip": true, "x-original-forwarded-for": true, "x-original-host": true,
	"x-original-url": true, "x-rewrite-url": true, "x-host": true, "true-client-ip": true, "cf-connecting-ip": true,
	"cf-connecting-ipv6": true, "fastly-client-ip": true, "x-appengine-user-ip": true, "x-envoy-external-address": true,
	"x-remote-addr": true, "x-remote-ip": true, "remote-addr": true, "proxy": true, // HTTP_PROXY, to what is behind CGI
	"sallyport-verdict": true,
}

// rewrite says what the service gets. The path stays as it was written; of the query,
// pairs that net/url can't read are gone (ReverseProxy sees to that), because the guard
// passes over them, and what another language makes of them nobody counted.
func (p *proxy) rewrite(pr *httputil.ProxyRequest) {
	pr.Out.URL.Scheme, pr.Out.URL.Host = p.upstream.Scheme, p.upstream.Host
	pr.Out.Host = pr.In.Host
	// The server fills this map in when the body has been read, and a copy of it never.
	pr.Out.Trailer = pr.In.Trailer

	h := pr.Out.Header
	for name := range h {
		if forwarding[strings.ToLower(name)] || !isPlain(name) {
			delete(h, name)
		}
	}
	// An HTTP/2 connection (h2c) inside of this one would be any number of requests that
	// nobody counts, with whatever fields the client likes. A WebSocket is none.
	if upgrade := h.Get("Upgrade"); upgrade != "" && !strings.EqualFold(upgrade, "websocket") {
		delete(h, "Upgrade")
		delete(h, "Connection")
	}
	client, proven := p.client(pr.In)
	h.Set("X-Forwarded-For", client)
	h.Set("X-Forwarded-Host", pr.In.Host)
	h.Set("X-Forwarded-Proto", p.proto(pr.In, proven))
	verdict := "limited"
	if v, ok := pr.In.Context().Value(verdictKey{}).(handler.Verdict); ok && v.Allowed {
		verdict = "allowed"
	}
	h.Set("Sallyport-Verdict", verdict)
}

// isPlain tells a name of letters, digits and hyphens. What is behind CGI, WSGI or Rack
// can't tell X_Forwarded_For from X-Forwarded-For, or X_Api_Key from X-Api-Key, by which
// the guard counts, and PHP behind some servers not even X.Api.Key. So other names are taken
// away, as nginx does.
func isPlain(name string) bool {
	for i := 0; i < len(name); i++ {
		if c := name[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// client is the address that the guard has proven, else the peer's: without any, a
// service would take the proxy itself, on loopback, for the client.
func (p *proxy) client(r *http.Request) (addr string, proven bool) {
	if addr := p.guard.ClientAddr(r); addr.IsValid() {
		return addr.String(), true
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return "unknown", false
	}
	return host, false
}

// proto is how the client came. Where a proxy stands before this one, TLS ended there,
// and what it says of that is believed as its word on the address is.
func (p *proxy) proto(r *http.Request, proven bool) string {
	if said := r.Header["X-Forwarded-Proto"]; proven && !p.direct && len(said) == 1 && said[0] == "https" {
		return "https"
	}
	return "http"
}
