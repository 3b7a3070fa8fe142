package handler

import (
	"net/http"
	"strconv"
)

const (
	fieldLegacyLimit     = "X-Ratelimit-Limit"
	fieldLegacyRemaining = "X-Ratelimit-Remaining"
	fieldLegacyReset     = "X-Ratelimit-Reset"
)

// setLegacy writes the three fields for one policy: that of the refusal, else the
// one with the least left. What another guard wrote stays if it has less.
func (v *Verdict) setLegacy(h http.Header, wait int64) {
	d := v.detail
	chosen := -1
	for i := range d.asked {
		if o := d.shown(i); o != nil && (chosen < 0 || i == d.refusing || o.Remaining < d.shown(chosen).Remaining) {
			chosen = i
		}
	}
	if chosen < 0 || d.refusing >= 0 && (chosen != d.refusing || wait == 0) {
		return
	}
	o := d.shown(chosen)
	if old := h[fieldLegacyRemaining]; len(old) > 0 && chosen != d.refusing {
		if n, err := strconv.ParseInt(old[0], 10, 64); err == nil && n < int64(o.Remaining) {
			return
		}
	}
	reset := ceilSeconds(o.ResetAfter)
	if chosen == d.refusing && wait > 0 {
		reset = wait
	}
	values := []string{
		strconv.FormatInt(int64(o.Limit.Quota), 10),
		strconv.FormatInt(max(0, int64(o.Remaining)), 10),
		strconv.FormatInt(reset, 10),
	}
	h[fieldLegacyLimit] = values[0:1:1]
	h[fieldLegacyRemaining] = values[1:2:2]
	h[fieldLegacyReset] = values[2:3:3]
}
