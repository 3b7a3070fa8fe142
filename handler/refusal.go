package handler

import (
	"net/http"
	"net/textproto"
	"strings"
)

// Values that all refusals share. Each has no room behind it, so that whoever adds
// to a header makes a copy first.
var (
	noStore     = []string{"no-store"}
	problemType = []string{"application/problem+json"}
	pageType    = []string{"text/html; charset=utf-8"}
	varyAccept  = []string{"Accept"}
)

// Refuse writes the whole refusal: headers, status, and a body of
// application/problem+json (RFC 9457), or a short HTML page if the request prefers
// text/html, or what the policy's Refused writes. Headers that outer layers have set
// for any answer stay (CORS, Strict-Transport-Security, Content-Security-Policy,
// Set-Cookie, Vary); those that describe another body or let caches keep this one
// go (ETag, Last-Modified, Content-Length, Content-Encoding and their kin, Expires,
// Cache-Control). A HEAD request gets no body, and neither does a caller who has
// hung up. A Verdict with Status 0 that is refused all the same, such as that of a Signal
// policy, is a 429.
func (v Verdict) Refuse(w http.ResponseWriter, r *http.Request) {
	v.refuse(w, r, nil)
}

// refuse writes with the inquiry's buffer, if there is one.
func (v *Verdict) refuse(w http.ResponseWriter, r *http.Request, q *inquiry) {
	wait := v.seconds()
	if v.Status == 0 {
		v.Status = http.StatusTooManyRequests
	}
	h := w.Header()
	empty := len(h) == 0
	if !empty {
		dropStale(h)
	}
	if v.Status == statusClientClosedRequest {
		h["Cache-Control"] = noStore
		delete(h, "Content-Type")
		w.WriteHeader(v.Status)
		return
	}
	v.setHeaders(h, wait)
	h["Cache-Control"] = noStore
	var decorate func(http.Header, *http.Request)
	if v.detail != nil {
		decorate = v.detail.guard.decorate
	}
	if p := v.refusing(); p != nil && p.Refused != nil {
		delete(h, "Content-Type")
		if decorate != nil {
			decorate(h, r)
		}
		kept := *v
		if q != nil && v.detail == &q.detail {
			kept = v.keep()
		}
		ctx := r.Context()
		if q != nil {
			ctx = q.context(ctx)
		}
		serveIn(withVerdict(ctx, kept), p.Refused, w, r)
		return
	}
	page := prefersHTML(r.Header["Accept"])
	if page {
		h["Content-Type"] = pageType
	} else {
		h["Content-Type"] = problemType
	}
	if empty {
		h["Vary"] = varyAccept
	} else {
		addVary(h)
	}
	if decorate != nil {
		decorate(h, r)
	}
	w.WriteHeader(v.Status)
	if r.Method == http.MethodHead {
		return
	}
	var b []byte
	if q != nil {
		b = q.text[:0]
	}
	if page {
		b = v.appendPage(b, wait)
	} else {
		b = v.appendProblem(b, wait)
	}
	if q != nil {
		q.text = b
	}
	// There is nobody to tell of an error: the connection is gone.
	_, _ = w.Write(b)
}

// dropStale removes the headers that describe a body which is not sent, and those
// by which a cache would keep the refusal for others: RFC 9213 lets a targeted
// field, such as CDN-Cache-Control, overrule Cache-Control. A server sends names as
// they are spelt in the map ("ETag"), so all spellings of a name go.
func dropStale(h http.Header) {
	for name := range h {
		switch field := textproto.CanonicalMIMEHeaderKey(name); field {
		case "Etag", "Last-Modified", "Expires", "Age", "Surrogate-Control", "X-Accel-Expires", "Edge-Control", "Accept-Ranges",
			"Content-Length", "Content-Encoding", "Content-Range", "Content-Disposition",
			"Content-Language", "Content-Location", "Content-Md5", "Content-Digest", "Repr-Digest", "Digest":
			delete(h, name)
		case "Cache-Control", "Content-Type", fieldRetryAfter:
			if name != field {
				delete(h, name) // what is ours to say would stand beside it
			}
		default:
			if strings.HasSuffix(field, "-Cache-Control") {
				delete(h, name)
			}
		}
	}
}

// addVary adds Accept to Vary, which decided the form of the body.
func addVary(h http.Header) {
	old := h["Vary"]
	if len(old) == 0 {
		h["Vary"] = varyAccept
		return
	}
	for _, line := range old {
		for line != "" {
			var name string
			name, line = cutList(line)
			if name = strings.Trim(name, " \t"); name == "*" || strings.EqualFold(name, "Accept") {
				return
			}
		}
	}
	h["Vary"] = append(old[:len(old):len(old)], "Accept")
}
