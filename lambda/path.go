package lambda

import (
	"net/url"
	"strings"
)

// routePath returns path without what API Gateway put before it: the stage, the base
// path of a custom domain. template is the route's own path ("/users/{proxy+}"), and
// params are its path parameters; the route is then the end of path. It is false if
// that can't be seen.
func routePath(path, template string, params map[string]string) (string, bool) {
	if template == "/" {
		return template, true
	}
	route, ok := fillIn(template, params)
	switch {
	case !ok:
		return "", false
	case strings.HasSuffix(path, route):
		return route, true
	case strings.HasSuffix(path, route+"/"):
		return route + "/", true
	}
	return "", false
}

// fillIn replaces {name} and {name+} in template.
func fillIn(template string, params map[string]string) (string, bool) {
	if !strings.HasPrefix(template, "/") {
		return "", false // $default
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(template, "{")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		name, rest, closed := strings.Cut(after, "}")
		value, known := params[strings.TrimSuffix(name, "+")]
		if !closed || !known || value == "" {
			return "", false
		}
		b.WriteString(value)
		template = rest
	}
}

// withoutStage cuts the stage off the path of an HTTP API. The API's own endpoint
// has every stage but $default in its paths, a custom domain has none.
func withoutStage(path, stage, domain string) string {
	if stage == "" || stage == "$default" || (domain != "" && !strings.Contains(domain, ".execute-api.")) {
		return path
	}
	rest, ok := strings.CutPrefix(path, "/"+stage)
	switch {
	case !ok, rest != "" && rest[0] != '/':
		return path
	case rest == "":
		return "/"
	}
	return rest
}

// setPath sets the path of u from its escaped form. A path that is not well escaped
// stands for itself.
func setPath(u *url.URL, path string) {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	u.Path = path
	if unescaped, err := url.PathUnescape(path); err == nil {
		u.Path = unescaped
		if u.EscapedPath() != path {
			u.RawPath = path
		}
	}
}
