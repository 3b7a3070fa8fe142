package handler

import (
	"net/http"
	"net/textproto"
	"strings"
)

const kindHeader = "header"

// ByHeader counts by a request header, such as an API key. Spaces around the value
// don't count. What servers take for one is one: in "Authorization" and
// "Proxy-Authorization" the scheme in upper or lower case and with any number of
// spaces behind it (RFC 9110 section 11.4); of "Host", which is that of the request,
// the name in lower case, without a port and the dot of the root.
//
// Several lines are one identity only if they say the same; empty ones don't count.
// All requests whose lines differ are counted together, and the log says so. To join
// the lines, or to take one, would let a caller choose a new identity for each
// request with a line that the handler doesn't read; to count him by his address
// would give one API key a budget for each address it is used from.
//
// Values that nobody has verified are cheap to invent: put a policy with ByIP
// before this one.
func ByHeader(name string) Key {
	name = textproto.CanonicalMIMEHeaderKey(name)
	if !isHeaderName(name) {
		return Key{invalid{kindHeader + ":" + name, "want a header's name"}}
	}
	return Key{textKey{text: headerText(name)}}
}

type headerText string

func (h headerText) find(q *inquiry) (string, presence) {
	if h == "Host" {
		return h.normal(q.r.Host), present
	}
	value, found := "", absent
	for _, line := range q.r.Header[string(h)] {
		if value, found = merge(value, found, h.normal(line)); found == several {
			break
		}
	}
	return value, found
}

// normal is the one form of the values that mean the same.
func (h headerText) normal(value string) string {
	value = trimField(value)
	switch h {
	case "Host":
		return normalHost(value)
	case "Authorization", "Proxy-Authorization":
		return normalCredentials(value)
	}
	return value
}

// normalHost returns the name of a Host field, "name" or "name:port".
func normalHost(value string) string {
	if i := strings.LastIndexByte(value, ':'); i >= 0 && (value[0] == '[' || i == strings.IndexByte(value, ':')) &&
		(i == len(value)-1 || isPort(value[i:])) {
		value = value[:i]
	}
	return strings.ToLower(strings.TrimSuffix(value, "."))
}

// normalCredentials writes the scheme as a header's name is, "Bearer", which most
// have done already, and one space behind it.
func normalCredentials(value string) string {
	scheme, rest, found := strings.Cut(value, " ")
	if !found {
		return value
	}
	normal, credentials := textproto.CanonicalMIMEHeaderKey(scheme), strings.TrimLeft(rest, " ")
	if normal == scheme && len(credentials) == len(rest) {
		return value
	}
	return normal + " " + credentials
}

func (h headerText) kind() string { return kindHeader }
func (h headerText) name() string { return string(h) }
func (h headerText) rank() rank   { return rankCaller }

// merge takes one more value into account.
func merge(value string, found presence, next string) (string, presence) {
	switch next = trimField(next); {
	case next == "" || found == present && next == value:
		return value, found
	case found == absent:
		return next, present
	}
	return "", several
}

const kindCookie = "cookie"

// ByCookie counts by a cookie of this name. Browsers do send several of one name,
// for several paths or domains; the first one counts, which is the one that
// Request.Cookie gives to the handler: so a session has one budget, whatever is sent
// beside it. A cookie that the server did not sign is cheap to invent.
func ByCookie(name string) Key {
	if !isHeaderName(name) {
		return Key{invalid{kindCookie + ":" + name, "want a cookie's name"}}
	}
	return Key{textKey{text: cookieText(name)}}
}

type cookieText string

func (c cookieText) find(q *inquiry) (string, presence) {
	cookie, err := q.r.Cookie(string(c))
	if err != nil {
		return "", absent
	}
	return cookie.Value, present
}

func (c cookieText) kind() string { return kindCookie }
func (c cookieText) name() string { return string(c) }
func (c cookieText) rank() rank   { return rankCaller }

const kindFunc = "func"

// ByFunc counts by what f says of a request; "" is no identity. f must be safe for
// concurrent use. If it panics, that is no identity either, and the log says so.
// Whom such a key counts together only f knows: see [Policy.ShowQuota].
func ByFunc(f func(*http.Request) string) Key {
	if f == nil {
		return Key{invalid{kindFunc, "want a function"}}
	}
	return Key{textKey{text: funcText{f}}}
}

type funcText struct{ f func(*http.Request) string }

func (f funcText) find(q *inquiry) (value string, found presence) {
	defer q.recover("key", func() { value, found = "", absent })
	return f.f(q.r), present
}

func (f funcText) kind() string { return kindFunc }
func (f funcText) name() string { return "" }
func (f funcText) rank() rank   { return rankUnknown }
