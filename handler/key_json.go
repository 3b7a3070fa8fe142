package handler

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	kindJSON = "json"

	// maxPath is the largest number of names in a path.
	maxPath = 16

	// maxExact bounds the whole numbers that all who read JSON tell apart
	// (RFC 8259 section 6).
	maxExact = 1<<53 - 1
)

// ByJSON counts by a member of a JSON body, named by a path with dots between the
// names of nested objects: "email", "user.email". A name that has a dot itself can't be
// reached. The body is read before any store is asked, up to Config.BodyLimit, and
// the handler gets it again byte for byte. [KeyValue] gives the handler the value.
//
// A text counts as it reads, a whole number between -(2^53-1) and 2^53-1 as it is
// written, true and false by their names. Only where the member is absent, null, empty
// or blank, or where there is no body, is there no identity, and the client's address
// counts instead. What two readers might read differently is refused with 400:
//
//   - a name on the path that an object has twice, or in another case, which is one
//     name to encoding/json; or the path as a field's name in the query beside the body
//   - any other number: 1.0, 1e0 and 10e-1 are all 1
//   - an object or a list at the end of the path, anything but an object before it
//   - half a surrogate pair or a NUL in the value
//   - a body that is no JSON or no UTF-8, that has something behind it, or that is
//     nested deeper than the 10,000 that encoding/json reads
//   - a Content-Type other than application/json and those that end in +json, a charset
//     other than UTF-8, a Content-Encoding
//
// A body beyond BodyLimit is refused with 413.
//
// The value is what the caller says, nothing more: put a policy with ByIP before
// this one. New reports an empty path, an empty name in it, and more than 16 names.
func ByJSON(path string) Key {
	names := strings.Split(path, ".")
	j := &jsonText{path: path}
	for _, name := range names {
		if !isFieldName(name) || len(names) > maxPath || len(path) > maxFieldName {
			return Key{invalid{textOf(kindJSON, path), "want a path such as \"email\" or \"user.email\", of 16 names at most"}}
		}
		j.names = append(j.names, []byte(name))
	}
	return Key{textKey{text: j}}
}

type jsonText struct {
	path  string
	names [][]byte
}

func (j *jsonText) kind() string { return kindJSON }
func (j *jsonText) name() string { return j.path }
func (j *jsonText) rank() rank   { return rankTarget }

func (j *jsonText) find(q *inquiry) (string, presence) {
	body := q.content()
	switch {
	case body.status != 0:
		return q.unreadable(body.status)
	case body.media == mediaNone:
		return "", absent
	case body.media != mediaJSON:
		return q.misfit()
	case !body.validJSON() || j.inQuery(q.r):
		return q.unreadable(http.StatusBadRequest)
	}
	value, found := descend(body.data, j.names)
	if found == present {
		var text string
		if text, found = scalar(value); found == present {
			return q.one(j.path, text)
		}
	}
	if found == absent {
		return "", absent
	}
	return q.unreadable(http.StatusBadRequest)
}

// inQuery tells that the caller says it twice: a handler may look there first.
func (j *jsonText) inQuery(r *http.Request) bool {
	if r.URL == nil || r.URL.RawQuery == "" {
		return false
	}
	found := fields{name: j.path}
	found.addQuery(r.URL.RawQuery)
	return found.n > 0 || found.bad
}

func (c *content) validJSON() bool {
	if !c.checked {
		c.checked, c.isJSON = true, utf8.Valid(c.data) && json.Valid(c.data)
	}
	return c.isJSON
}

// scalar returns the text of a JSON value that has one.
func scalar(value []byte) (string, presence) {
	switch value[0] {
	case 'n':
		return "", absent
	case 't', 'f':
		return string(value), present
	case '"':
		// A lone surrogate becomes U+FFFD, which is no text of ours.
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return "", unreadable
		}
		return s, present
	case '{', '[':
		return "", unreadable
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < -maxExact || n > maxExact || n == 0 && value[0] == '-' {
		return "", unreadable
	}
	return string(value), present
}
