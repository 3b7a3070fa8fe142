package upstash

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"strings"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// malformed is an answer that makes no sense. Whether the commands were executed
// nobody knows.
func malformed(what string) error {
	return &fault.Error{Kind: stores.ErrUnavailable, Text: "upstash: " + what}
}

// broken sorts the failures of connections. Their own texts are not repeated: they
// hold addresses. A connection that was reused and broke before a byte of the answer
// had most likely been closed while nobody looked.
func broken(err error, unsent, reused bool) error {
	f := &fault.Error{Kind: stores.ErrUnavailable, Text: "upstash: the connection broke", Cause: err, Definite: unsent, Stale: reused}
	var (
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		record  tls.RecordHeaderError
		timeout net.Error
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		// Upstash takes the name away when a database is deleted or archived.
		f.Kind, f.Lasting = stores.ErrMisconfigured, true
		f.Text = "upstash: the host of the URL is not known (a typing error, or the database is deleted or archived)"
	case errors.As(err, &cert) || errors.As(err, &unknown):
		f.Kind, f.Lasting, f.Text = stores.ErrMisconfigured, true, "upstash: the server's certificate is not valid for the URL"
	case errors.As(err, &record):
		f.Kind, f.Lasting, f.Text = stores.ErrMisconfigured, true, "upstash: the server does not speak TLS"
	case unsent && errors.As(err, &timeout) && timeout.Timeout():
		f.Text = "upstash: no connection in time"
	case unsent:
		f.Text = "upstash: no connection"
	}
	return f
}

// What the text of an error about a script says, beside its kind.
var (
	errNoScript    = errors.New("the server does not have the script")
	errNotCompiled = errors.New("the server does not take the script")
)

// verdict is what the text of a server's error says.
type verdict struct {
	kind    error
	cause   error // errNoScript, errNotCompiled, or nil
	text    string
	lasting bool
	keyOnly bool
	command bool // it is about this command, and others may be served
	known   bool // the text says that nothing was executed
}

// signs are looked for in order, in a text in capitals; a trailing blank marks a first
// word. Servers word their texts differently and change them, so each sign is as short
// as is sure.
var signs = []struct {
	sign string
	verdict
}{
	{"WRONGPASS ", verdict{kind: stores.ErrMisconfigured, text: "WRONGPASS: the token is wrong", lasting: true}},
	{"NOAUTH ", verdict{kind: stores.ErrMisconfigured, text: "NOAUTH: the token was not taken", lasting: true}},
	{"UNAUTHORI", verdict{kind: stores.ErrMisconfigured, text: "the token was not taken", lasting: true}},
	{"NOSCRIPT ", verdict{kind: stores.ErrUnavailable, cause: errNoScript, text: "NOSCRIPT: the server does not have the script"}},
	{"SHEBANG", verdict{kind: stores.ErrMisconfigured, cause: errNotCompiled, text: "the server does not take the script", lasting: true, command: true}},
	{"NOPERM ", verdict{kind: stores.ErrMisconfigured, text: "NOPERM: the token lacks a right (a read-only token?)", lasting: true, command: true}},
	{"NO PERMISSION", verdict{kind: stores.ErrMisconfigured, text: "the token lacks a right", lasting: true, command: true}},
	{"USER EXECUTING THE SCRIPT", verdict{kind: stores.ErrMisconfigured, text: "the token lacks a right that the script needs", lasting: true, command: true}},
	{"REQUESTS LIMIT", verdict{kind: stores.ErrThrottled, text: "the database's quota of commands is used up", lasting: true}},
	{"REQUEST LIMIT", verdict{kind: stores.ErrThrottled, text: "the database's quota of commands is used up", lasting: true}},
	{"CAPACITY QUOTA", verdict{kind: stores.ErrThrottled, text: "the database is full", lasting: true}},
	{"OOM ", verdict{kind: stores.ErrThrottled, text: "OOM: the database is full"}},
	{"WRONGTYPE ", verdict{kind: stores.ErrMisconfigured, text: "WRONGTYPE: something else uses this key", keyOnly: true}},
	{"NOT AN INT", verdict{kind: stores.ErrMisconfigured, text: "something else uses this key: no number", keyOnly: true}},
	{"WOULD OVERFLOW", verdict{kind: stores.ErrMisconfigured, text: "something else uses this key: too large a number", keyOnly: true}},
	{"MAX KEY SIZE", verdict{kind: stores.ErrMisconfigured, text: "the key is too long", keyOnly: true}},
	{"MAX REQUEST SIZE", verdict{kind: stores.ErrMisconfigured, text: "the request is too long", keyOnly: true}},
	{"READONLY ", verdict{kind: stores.ErrUnavailable, text: "READONLY: the server takes no writes now"}},
	{"LOADING ", verdict{kind: stores.ErrUnavailable, text: "LOADING: the server is starting"}},
	{"MASTERDOWN ", verdict{kind: stores.ErrUnavailable, text: "MASTERDOWN: the server takes no writes now"}},
	{"CLUSTERDOWN ", verdict{kind: stores.ErrUnavailable, text: "CLUSTERDOWN: the server takes no writes now"}},
	{"MISCONF ", verdict{kind: stores.ErrUnavailable, text: "MISCONF: the server takes no writes now"}},
	{"BUSY ", verdict{kind: stores.ErrUnavailable, text: "BUSY: the server runs a script"}},
	{"COMPILING SCRIPT", verdict{kind: stores.ErrMisconfigured, cause: errNotCompiled, text: "the server does not take the script", lasting: true, command: true}},
	{"UNKNOWN COMMAND", verdict{kind: stores.ErrMisconfigured, text: "the server does not know the command", lasting: true, command: true}},
	{"UNKNOWN REDIS COMMAND", verdict{kind: stores.ErrMisconfigured, text: "the server does not know the command", lasting: true, command: true}},
	{"NOT AVAILABLE", verdict{kind: stores.ErrMisconfigured, text: "the server does not offer the command", lasting: true, command: true}},
	{"WRONG NUMBER OF ARGUMENTS", verdict{kind: stores.ErrMisconfigured, text: "the server does not understand the command", lasting: true, command: true}},
	{"UNSUPPORTED OPTION", verdict{kind: stores.ErrMisconfigured, text: "the server does not understand the command", lasting: true, command: true}},
	{"SYNTAX ERROR", verdict{kind: stores.ErrMisconfigured, text: "the server does not understand the command", lasting: true, command: true}},
}

// read sorts the text of a server's error. The text itself is never repeated: some
// servers put the command, and with it the key, into it.
func read(text string) verdict {
	upper := strings.ToUpper(text[:min(len(text), 512)])
	for i := range signs {
		sign := signs[i].sign
		if word, isFirst := strings.CutSuffix(sign, " "); isFirst {
			if upper != word && !strings.HasPrefix(upper, sign) {
				continue
			}
		} else if !strings.Contains(upper, sign) {
			continue
		}
		v := signs[i].verdict
		v.known = true
		return v
	}
	return verdict{kind: stores.ErrUnavailable, text: fmt.Sprintf("an error of %d bytes that is not known here", len(text))}
}

// failedSlot is the error of a command that failed in its slot: Redis changes nothing
// then. A text that speaks of a timeout is another server's behind the first, and may
// hide a change.
func failedSlot(text string) error { return read(text).ofSlot(text) }

// failedScript is failedSlot for the script, at work on so many hits. A server or a
// token that does not let scripts run still lets hits of cost 1 be counted, so that is no
// fault of the whole store: the key goes its own way for a few seconds, and the others
// are asked about. What stops the script among several hits for a reason that is not
// known here may have stopped it behind the first.
func failedScript(text string, hits int) *fault.Error {
	v := read(text)
	v.keyOnly = v.keyOnly || v.command
	f := v.ofSlot(text)
	f.Definite = f.Definite && (v.known || hits == 1)
	return f
}

func (v verdict) ofSlot(text string) *fault.Error {
	lower := strings.ToLower(text)
	return v.fault(v.known || !strings.Contains(lower, "timeout") && !strings.Contains(lower, "timed out"))
}

func (v verdict) fault(definite bool) *fault.Error {
	return &fault.Error{Kind: v.kind, Cause: v.cause, Text: "upstash: " + v.text, Definite: definite, Lasting: v.lasting, KeyOnly: v.keyOnly}
}

// badStatus is the error of an answer other than 200. What a request is refused with,
// it was not executed with: a redirect or a 4xx, the timeouts among them apart. A 5xx
// may come from a proxy that lost the server's answer.
func badStatus(resp *http.Response, body []byte) error {
	code := resp.StatusCode
	definite := code/100 == 3 || code/100 == 4 && code != http.StatusRequestTimeout && code != 499
	if json.Valid(body) {
		text, isError := wholeError(body)
		if v := read(text); isError && v.known {
			v.text = fmt.Sprintf("HTTP %d: %s", code, v.text)
			return v.fault(true)
		}
	}
	kind := "other"
	switch media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media {
	case "text/html", "text/plain", "application/json":
		kind = media
	}
	f := &fault.Error{
		Kind: stores.ErrUnavailable, Definite: definite,
		Text: fmt.Sprintf("upstash: HTTP %d, %d bytes of %s", code, len(body), kind),
	}
	switch {
	case code == http.StatusTooManyRequests:
		f.Kind = stores.ErrThrottled
	case code == http.StatusPaymentRequired:
		f.Kind, f.Lasting = stores.ErrThrottled, true
	case code/100 == 3, code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound,
		code == http.StatusMethodNotAllowed, code == http.StatusProxyAuthRequired, code == http.StatusGone:
		f.Kind, f.Lasting = stores.ErrMisconfigured, true
	case definite:
		f.Kind = stores.ErrMisconfigured
	}
	return f
}
