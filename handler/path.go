package handler

import (
	"net/http"
	"net/url"
	"path"
)

// Paths returns a function for [Policy.Skip] that exempts requests for exactly
// these paths, whatever the query: Paths("/healthz") exempts neither "/healthz/"
// nor "/Healthz".
//
// The paths are cleaned as [http.ServeMux] does it, and a request is exempt only if
// its path is spelt in that clean form, unescaped where it need not be escaped. So
// an exemption never widens: "/healthz/../login" is not "/healthz", and neither is
// "/login/../healthz", which a router that doesn't clean paths would take to
// "/login", or "/items/..%2fhealthz", which ServeMux takes to "/items/{id}". Such
// spellings are counted, nothing more.
func Paths(paths ...string) func(*http.Request) bool {
	exempt := make(map[string]struct{}, len(paths))
	for _, p := range paths {
		u := url.URL{Path: cleanPath(p)}
		exempt[u.EscapedPath()] = struct{}{}
	}
	return func(r *http.Request) bool {
		if r.URL == nil {
			return false
		}
		p := r.URL.EscapedPath()
		if p == "" {
			p = "/"
		}
		_, ok := exempt[p]
		return ok
	}
}

// cleanPath is what ServeMux routes p as: rooted, without dot segments and double
// slashes, with the slash at its end kept.
func cleanPath(p string) string {
	if p == "" || p[0] != '/' {
		p = "/" + p
	}
	clean := path.Clean(p)
	if p[len(p)-1] == '/' && clean != "/" {
		clean += "/"
	}
	return clean
}
