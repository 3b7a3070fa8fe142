package handler

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// The names in the form that http.Header keeps, so that they may be assigned
// without being made canonical.
const (
	fieldQuota      = "Ratelimit-Policy"
	fieldState      = "Ratelimit"
	fieldRetryAfter = "Retry-After"
)

// maxField is the largest Integer of structured fields (RFC 9651 section 3.3.1).
const maxField = 999_999_999_999_999

// SetHeaders sets the rate limit fields, and on a refusal Retry-After, in the style
// of Config.Headers: for the Enforce policies that are keyed on the caller alone or
// have ShowQuota, and no others. A policy that nobody counted (OutageAllow,
// OutageRefuse) shows no numbers, and one that refused a cost above its quota shows
// the quota alone. A line that is there, from another guard or from this one, is
// extended and never doubled: an item of the same name is replaced.
func (v Verdict) SetHeaders(h http.Header) {
	if v.detail == nil || h == nil {
		return
	}
	wait := int64(0)
	if v.Status != 0 {
		wait = v.seconds()
	}
	v.setHeaders(h, wait)
}

func (v *Verdict) setHeaders(h http.Header, wait int64) {
	if v.detail == nil {
		return
	}
	retryAfter := v.setFields(h, wait)
	if wait > 0 {
		if retryAfter == nil {
			retryAfter = []string{strconv.FormatInt(wait, 10)}
		}
		h[fieldRetryAfter] = retryAfter
	}
}

// seconds is RetryAfter as the client reads it: 0, or rounded up and at least 1.
func (v *Verdict) seconds() int64 { return ceilSeconds(v.retryAfter()) }

func ceilSeconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Second) + 1
}

// setFields writes the fields of the style. It returns the value of Retry-After if
// that happened to be at hand, cut from the same memory.
func (v *Verdict) setFields(h http.Header, wait int64) []string {
	d := v.detail
	switch d.guard.headers {
	case HeadersOff:
		return nil
	case HeadersLegacy:
		v.setLegacy(h, wait)
		return nil
	}
	if len(d.guard.quotas) == 0 || len(d.asked) == 0 {
		return nil
	}
	empty := len(h) == 0
	if quotas := v.quotas(); len(quotas) > 0 {
		setList(h, fieldQuota, quotas, empty)
	}
	var room [128]byte
	b, last := room[:0], -1
	for i := range d.asked {
		o := d.shown(i)
		if o == nil || i == d.refusing && wait == 0 {
			// Nobody counted a cost above the quota: there is nothing to wait for, and
			// what remains for smaller ones is not known.
			continue
		}
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = append(b, d.asked[i].policy.state...)
		b = appendField(b, int64(o.Remaining))
		b = append(b, ";t="...)
		t := ceilSeconds(o.ResetAfter)
		if i == d.refusing && wait > 0 {
			t, last = wait, len(b)
		} else {
			last = -1
		}
		b = appendField(b, t)
	}
	if len(b) == 0 {
		return nil
	}
	// The refusing policy's item is the last, so that Retry-After, which is its t, is
	// the end of the same text.
	text := string(b)
	if last < 0 {
		setList(h, fieldState, []string{text}, empty)
		return nil
	}
	values := []string{text, text[last:]}
	setList(h, fieldState, values[:1:1], empty)
	return values[1:]
}

// shown returns the outcome of the policy at i if responses show it.
func (d *detail) shown(i int) *Outcome {
	a := &d.asked[i]
	if !a.policy.shown || a.outcome < 0 || d.outcomes[a.outcome].Source == stores.None {
		return nil
	}
	return &d.outcomes[a.outcome]
}

// quotas returns the RateLimit-Policy field: all policies shown that apply to the
// request, decided or not, so that its value is the same on most responses.
func (v *Verdict) quotas() []string {
	d := v.detail
	if d.guard.plain && !d.uncounted() {
		return d.guard.quotas
	}
	var b []byte
	for i := range d.asked {
		p := d.asked[i].policy
		if !p.shown || d.asked[i].outcome >= 0 && d.shown(i) == nil {
			continue
		}
		if limit := d.hits[i].Limit; limit != p.Limit {
			b = appendItem(b, string(appendQuota(nil, p.quoted, limit)))
		} else {
			b = appendItem(b, p.quota)
		}
	}
	if len(b) == 0 {
		return nil
	}
	return []string{string(b)}
}

// uncounted tells that nobody counted one of the policies.
func (d *detail) uncounted() bool {
	for i := range d.outcomes {
		if d.outcomes[i].Source == stores.None {
			return true
		}
	}
	return false
}

// appendQuota writes an item of RateLimit-Policy. The draft wants a window of at
// least a second.
func appendQuota(b []byte, name string, limit stores.Limit) []byte {
	b = append(b, name...)
	b = append(b, ";q="...)
	b = appendField(b, int64(limit.Quota))
	b = append(b, ";w="...)
	return appendField(b, max(1, ceilSeconds(limit.Window)))
}

func appendItem(b []byte, item string) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	return append(b, item...)
}

func appendField(b []byte, n int64) []byte {
	return strconv.AppendInt(b, min(max(n, 0), maxField), 10)
}

// setList sets a list field, keeping what others have written there. Most headers
// are empty as yet: then nothing need be looked up.
func setList(h http.Header, name string, values []string, empty bool) {
	if !empty {
		if old := h[name]; len(old) > 0 {
			values = []string{mergeList(old, values[0])}
		}
	}
	h[name] = values
}

// mergeList puts ours behind the items of old whose names are not among it.
func mergeList(old []string, ours string) string {
	var b []byte
	for _, line := range old {
		for line != "" {
			var item string
			item, line = cutList(line)
			if item = strings.Trim(item, " \t"); item != "" && !names(ours, itemName(item)) {
				b = appendItem(b, item)
			}
		}
	}
	return string(appendItem(b, ours))
}

// names tells whether an item of list has this name.
func names(list, name string) bool {
	for list != "" {
		var item string
		item, list = cutList(list)
		if itemName(strings.Trim(item, " \t")) == name {
			return true
		}
	}
	return false
}

// itemName is an item without its parameters. A semicolon within quotes begins
// none.
func itemName(item string) string {
	inQuotes := false
	for i := 0; i < len(item); i++ {
		switch c := item[i]; {
		case c == '"':
			inQuotes = !inQuotes
		case c == '\\' && inQuotes:
			i++
		case c == ';' && !inQuotes:
			return strings.TrimRight(item[:i], " \t")
		}
	}
	return item
}
