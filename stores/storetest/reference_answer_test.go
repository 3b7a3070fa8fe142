package storetest

import (
	"math"
	"time"

	"github.com/sallyport/sallyport/stores"
)

func (r *reference) decision(allowed bool, h stores.Hit, w *window, now time.Time, fresh bool) (d stores.Decision) {
	d.Allowed = allowed
	d.Remaining = max(0, h.Limit.Quota-w.used)
	if !fresh {
		d.ResetAfter = r.left(w, now)
	}
	if !allowed {
		d.RetryAfter = d.ResetAfter
		if r.build.straddles && now.Sub(w.opened) < time.Millisecond {
			d.RetryAfter, d.ResetAfter = time.Millisecond, time.Millisecond
		}
	}
	switch r.bug {
	case "Remaining one too high":
		d.Remaining++
	case "Remaining goes negative":
		if !allowed {
			d.Remaining = -1
		}
	case "Remaining as it was before the hit":
		d.Remaining += max(h.Cost, 1)
	case "RetryAfter is always the whole window":
		if !allowed {
			d.RetryAfter, d.ResetAfter = h.Limit.Window, h.Limit.Window
		}
	case "RetryAfter is rounded down":
		d.RetryAfter = d.RetryAfter.Truncate(time.Millisecond)
	case "RetryAfter is in seconds, rounded down":
		d.RetryAfter = d.RetryAfter.Truncate(time.Second)
	case "RetryAfter is 0 at a refusal":
		d.RetryAfter = 0
	case "RetryAfter on an allowed hit":
		d.RetryAfter = d.ResetAfter
	case "RetryAfter beyond the window":
		if !allowed {
			d.RetryAfter, d.ResetAfter = h.Limit.Window+time.Second, h.Limit.Window+time.Second
		}
	case "ResetAfter is 0":
		d.ResetAfter = 0
	case "ResetAfter is always the whole window":
		d.ResetAfter = h.Limit.Window
	case "nobody counted":
		d.Source = stores.None
	case "reports a fault with a shared decision":
		d.Fault = stores.ErrUnavailable
	case "sets a Delay":
		d.Delay = time.Millisecond
	}
	return d
}

func (r *reference) pay(w *window, fresh bool, h stores.Hit, owed int, until time.Duration, now time.Time) (stillFresh bool) {
	if fresh && !r.has("a payment opens a whole window") {
		w.end, w.span = now.Add(until), until
	}
	if r.has("a payment moves the end") {
		w.end = now.Add(until)
	}
	before := w.used
	w.used = min(h.Limit.Quota, w.used+min(owed, h.Limit.Quota))
	switch r.bug {
	case "a payment overflows":
		w.used = min(h.Limit.Quota, before+owed)
	case "a payment lifts the level above the quota":
		w.used = before + min(owed, math.MaxInt32)
	case "a payment is forgotten":
		w.used = before
	case "a payment is lost with a refused hit":
		if w.used+max(h.Cost, 1) > h.Limit.Quota {
			w.used = before
		}
	case "a payment is lost when two pay at once":
		w.used = before
		r.pause()
		w.used = min(h.Limit.Quota, before+owed)
	}
	return r.keep(h, w)
}
