package lambda

import (
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sallyport/sallyport/handler"
)

// guarded is a guard that can be asked without running a handler. It goes through
// Guard.Handler, so that fields, refusals and what the context carries are those of
// any server.
type guarded struct{ http.Handler }

func newGuarded(g *handler.Guard) guarded {
	return guarded{g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(*recorder).allowed = r.Context() // a guard never wraps the ResponseWriter
	}))}
}

// ask returns the refusal, or, with its allowed set to the context for the user's
// handler, the rate limit fields for the answer.
func (g guarded) ask(r *http.Request) *recorder {
	rec := newRecorder(r.Method)
	g.ServeHTTP(rec, r)
	return rec
}

// text returns the body as the answers carry it. What is no UTF-8, or compressed,
// would not survive as JSON text.
func (rec *recorder) text() (body string, isBase64 bool) {
	b := rec.body.Bytes()
	if encoding := rec.sent.Get("Content-Encoding"); utf8.Valid(b) && (encoding == "" || strings.EqualFold(encoding, "identity")) {
		return string(b), false
	}
	return base64.StdEncoding.EncodeToString(b), true
}

// single returns the headers with one value for each name. Lines of one name are
// joined, which is what they mean (RFC 9110, section 5.3); Set-Cookie, the one name
// of which that is not true, is apart.
func (rec *recorder) single() (headers map[string]string, cookies []string) {
	headers = make(map[string]string, len(rec.sent))
	cookies = []string{}
	for name, lines := range rec.sent {
		if name == "Set-Cookie" {
			cookies = append(cookies, lines...)
			continue
		}
		headers[name] = strings.Join(lines, ", ")
	}
	return headers, cookies
}

// addToSingle returns a copy of an allowed answer's headers with the fields of h, but
// for those that multi has. It is a copy because a user may give the same map to all
// his answers.
func addToSingle(h http.Header, single map[string]string, multi map[string][]string) map[string]string {
	single = cloneSingle(single)
	for name, lines := range h {
		if _, there := spelling(multi, name); there {
			continue
		}
		if have, there := spelling(single, name); there {
			single[have] = strings.Join(mergeLines(name, lines, []string{single[have]}), ", ")
		} else {
			single[name] = strings.Join(lines, ", ")
		}
	}
	return single
}

// addToMulti is addToSingle for the other map. Without fresh, only fields whose names
// it has are added.
func addToMulti(h http.Header, multi map[string][]string, fresh bool) map[string][]string {
	multi = cloneMulti(multi)
	for name, lines := range h {
		if have, there := spelling(multi, name); there {
			multi[have] = mergeLines(name, lines, multi[have])
		} else if fresh {
			multi[name] = slices.Clone(lines)
		}
	}
	return multi
}

// mergeLines puts ours before what the answer has, in one line: an inner guard wrote
// there, later than we did, so that of a policy that both ask its item is the one to
// show. X-RateLimit-* can speak of one guard only, and then of the inner one.
func mergeLines(name string, ours, theirs []string) []string {
	if strings.HasPrefix(name, "X-") {
		return theirs
	}
	var known, all []string
	for _, line := range theirs {
		for item := range items(line) {
			known = append(known, itemName(item))
		}
	}
	for _, line := range ours {
		for item := range items(line) {
			if !slices.Contains(known, itemName(item)) {
				all = append(all, item)
			}
		}
	}
	for _, line := range theirs {
		all = slices.AppendSeq(all, items(line))
	}
	return []string{strings.Join(all, ", ")}
}

// spelling returns the key under which m has the header.
func spelling[V any](m map[string]V, name string) (string, bool) {
	for key := range m {
		if strings.EqualFold(key, name) {
			return key, true
		}
	}
	return "", false
}

// cloneSingle and cloneMulti never return nil: a nil map is null in JSON, which
// load balancers refuse.
func cloneSingle(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

func cloneMulti(m map[string][]string) map[string][]string {
	if m == nil {
		return map[string][]string{}
	}
	return maps.Clone(m)
}
