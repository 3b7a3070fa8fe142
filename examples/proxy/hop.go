package main

import (
	"net/http"
	"net/textproto"
	"strings"
)

// endToEnd returns r without the fields that end here because its Connection field names
// them (RFC 9110 section 7.6.1): ReverseProxy does not hand them on. The guard must not
// count by them either, or a client would be another one for it with each API key that he
// makes up, and to the service always one without any.
//
// Fields in which proxies before this one speak stay: the service does not get them as they
// are, and a client must not take them from the guard.
func endToEnd(r *http.Request) *http.Request {
	var ended []string
	for _, line := range r.Header["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			name = textproto.CanonicalMIMEHeaderKey(strings.Trim(name, " \t"))
			// It is Upgrade that Connection names rightly.
			if r.Header[name] != nil && name != "Upgrade" && name != "Connection" && name != "Te" && !forwarding[strings.ToLower(name)] {
				ended = append(ended, name)
			}
		}
	}
	if len(ended) == 0 {
		return r
	}
	r = r.WithContext(r.Context()) // the server keeps its own
	r.Header = r.Header.Clone()
	for _, name := range ended {
		delete(r.Header, name)
	}
	return r
}
