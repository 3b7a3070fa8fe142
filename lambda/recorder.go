package lambda

import (
	"bytes"
	"context"
	"net/http"
	"net/textproto"
	"strings"
)

// recorder is the ResponseWriter behind which an answer is collected. It keeps the
// rules of net/http's: the headers are those of the moment when the status was
// written, a body without a Content-Type is looked at to find one, and what must
// have no body has none.
type recorder struct {
	method  string
	header  http.Header
	sent    http.Header // what header was when the status was written; nil: not yet
	sniff   bool        // the body's first bytes are to tell its type
	status  int
	body    bytes.Buffer
	allowed context.Context // set by what stands behind a guard in place of the user's handler
}

func newRecorder(method string) *recorder {
	return &recorder{method: method, header: make(http.Header, 8)}
}

// Header implements http.ResponseWriter.
func (rec *recorder) Header() http.Header { return rec.header }

// WriteHeader implements http.ResponseWriter. Informational answers can't be sent
// and are left out.
func (rec *recorder) WriteHeader(status int) {
	if rec.sent != nil || (status >= 100 && status < 200) {
		return
	}
	switch {
	case status < 200 || status > 599:
		status = http.StatusInternalServerError // which the gateway would make 502
	case status == 499:
		// A guard's word for a caller who hung up. Here it is the invocation's time that
		// is over, and the caller may still be listening.
		status = http.StatusServiceUnavailable
	}
	rec.status = status
	rec.sent = make(http.Header, len(rec.header))
	for name, lines := range rec.header {
		if len(lines) > 0 && mayBeSent(name) {
			// Two spellings of a name are lines of one: neither may push the other out.
			key := textproto.CanonicalMIMEHeaderKey(name)
			rec.sent[key] = append(rec.sent[key], clean(lines)...)
		}
	}
	// The gateway writes the length of what it sends. HEAD and 304 tell of another.
	if rec.method != http.MethodHead && status != http.StatusNotModified {
		delete(rec.sent, "Content-Length")
	}
	_, typed := rec.header["Content-Type"] // even if it has no line: then none is wanted
	rec.sniff = !typed && rec.sent["Content-Type"] == nil && rec.sent["Content-Encoding"] == nil
}

// Write implements http.ResponseWriter.
func (rec *recorder) Write(b []byte) (int, error) {
	rec.WriteHeader(http.StatusOK)
	if rec.status == http.StatusNoContent || rec.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	if rec.sniff && len(b) > 0 {
		rec.sent["Content-Type"] = []string{http.DetectContentType(b)}
		rec.sniff = false
	}
	if rec.method == http.MethodHead {
		return len(b), nil
	}
	return rec.body.Write(b)
}

// Flush implements http.Flusher for handlers that insist on one. Nothing leaves
// before the handler returns.
func (rec *recorder) Flush() { rec.WriteHeader(http.StatusOK) }

// mayBeSent tells whether a header belongs into the answer: it is a name, it is
// about the message rather than the connection, and it is no trailer.
func mayBeSent(name string) bool {
	switch textproto.CanonicalMIMEHeaderKey(name) {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return false
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' || strings.IndexByte("()<>@,;:\\\"/[]?={}", c) >= 0 {
			return false
		}
	}
	return name != ""
}

// clean returns lines without line breaks, which would end the header.
func clean(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.Map(func(c rune) rune {
			if c == '\r' || c == '\n' || c == 0 {
				return ' '
			}
			return c
		}, line)
	}
	return out
}
