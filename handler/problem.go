package handler

import (
	"net/http"
	"strconv"
)

// Problem types of draft-ietf-httpapi-ratelimit-headers; about:blank means that the
// status says it all (RFC 9457 section 4.2.1).
const (
	typeQuotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeReduced       = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	typeAbnormal      = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
	typeBlank         = "about:blank"
)

// quotaExceeded begins the document of nearly all refusals.
const quotaExceeded = `{"type":"` + typeQuotaExceeded + `","title":"Too Many Requests","status":429,"detail":"`

// problem returns the type of a refusal that is no 429, and its title, which does not vary
// within a type.
func (v *Verdict) problem() (kind, title string) {
	switch {
	case v.Status == http.StatusServiceUnavailable:
		return typeReduced, "Service Unavailable"
	case v.detail != nil && v.detail.denied:
		return typeAbnormal, "Forbidden"
	}
	return typeBlank, http.StatusText(v.Status)
}

// appendProblem writes the problem document: by hand, because its only texts that
// are not ours are the names of policies, which are printable ASCII and quoted
// already.
func (v *Verdict) appendProblem(b []byte, wait int64) []byte {
	if v.Status == http.StatusTooManyRequests {
		b = append(b, quotaExceeded...)
	} else {
		kind, title := v.problem()
		b = append(b, `{"type":"`...)
		b = append(b, kind...)
		b = append(b, `","title":"`...)
		b = append(b, title...)
		b = append(b, `","status":`...)
		b = strconv.AppendInt(b, int64(v.Status), 10)
		b = append(b, `,"detail":"`...)
	}
	b = v.appendAdvice(b, wait)
	b = append(b, '"')
	if p := v.refusing(); p != nil && p.shown && v.Status == http.StatusTooManyRequests {
		b = append(b, `,"violated-policies":[`...)
		b = append(b, p.quoted...)
		b = append(b, ']')
	}
	if wait > 0 {
		b = append(b, `,"retry_after":`...)
		b = strconv.AppendInt(b, wait, 10)
	}
	return append(b, "}\n"...)
}

// appendAdvice says in one sentence what the client can do.
func (v *Verdict) appendAdvice(b []byte, wait int64) []byte {
	switch {
	case wait > 0:
		b = append(b, "Please try again in "...)
		b = appendWait(b, wait)
		return append(b, '.')
	case v.Status == http.StatusForbidden:
		return append(b, "This request is not accepted from where it came from."...)
	case v.Status == http.StatusRequestEntityTooLarge:
		return append(b, "This request is larger than what is accepted here."...)
	case v.Status == http.StatusBadRequest:
		return append(b, "This request could not be read without doubt. Each field must be in it once, in the form that its Content-Type says."...)
	case v.hopeless():
		return append(b, "This request is larger than the limit allows. Waiting does not help."...)
	}
	return append(b, "This request was not carried out."...)
}

var waitUnits = [...]struct {
	name    string
	seconds int64
}{{"day", 24 * 60 * 60}, {"hour", 60 * 60}, {"minute", 60}, {"second", 1}}

// appendWait writes seconds in words, in the largest unit that keeps two of it, and
// rounded up, so that nobody comes back too early.
func appendWait(b []byte, seconds int64) []byte {
	for _, u := range &waitUnits {
		if seconds < 2*u.seconds && u.seconds > 1 {
			continue
		}
		n := (seconds + u.seconds - 1) / u.seconds
		b = strconv.AppendInt(b, n, 10)
		b = append(b, ' ')
		b = append(b, u.name...)
		if n != 1 {
			b = append(b, 's')
		}
		break
	}
	return b
}
