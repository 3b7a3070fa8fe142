package storetest

import (
	"math"
	"slices"
	"time"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// disturb is for the bugs that show before a hit is weighed.
func (r *reference) disturb(a *account, rule *meter.Rule, cost *int64, now int64) {
	rule.Quota += a.credit
	rule.Burst += a.credit * rule.Emission
	switch r.bug {
	case "one hit too many":
		rule.Quota++
		rule.Burst += rule.Emission
	case "ignores the cost":
		*cost = 1
	case "takes twice the cost":
		*cost = min(2*(*cost), rule.Quota)
	case "starts anew with another quota":
		if a.quota != int(rule.Quota) {
			*a = account{}
		}
	case "keeps the first quota":
		rule.Quota = int64(a.quota)
	case "never forgets":
		a.End = max(a.End, now+rule.Window)
		for i := range a.stamps {
			a.stamps[i] = now
		}
	case "forgets the older window":
		a.P = 0
		if now >= a.End {
			a.N = 0
		}
	case "forgets the log when its oldest stamp goes":
		if len(a.stamps) > 0 && now >= a.stamps[0]+rule.Window {
			a.stamps = nil
		}
	case "refills wholly each period":
		if now >= a.opened+rule.Window {
			a.opened, a.End = now, 0
		}
	case "a block ends with the window":
		if now >= a.End && rule.Algorithm != stores.Log {
			a.Block = 0
		}
	}
}

func (r *reference) payMetered(a *account, rule *meter.Rule, owed, until, now int64) {
	before := a.copy()
	switch r.bug {
	case "takes what is owed for no time":
		until = max(until, rule.Window)
	case "a payment opens a whole window":
		until = rule.Window
	}
	a.pay(rule, owed, until, now)
	switch r.bug {
	case "a payment is forgotten":
		*a = before
	case "a payment lifts the level above the quota":
		*a = before
		wide := *rule
		wide.Quota = 4 * rule.Quota
		wide.Burst = 4 * rule.Burst
		a.pay(&wide, min(owed, math.MaxInt32), until, now)
	case "a payment moves the end":
		a.End = now + until
		for i := range a.stamps {
			a.stamps[i] = now + until - rule.Window
		}
	case "a payment lifts a block":
		a.Block = 0
	case "a payment is lost when two pay at once":
		after := a.copy()
		*a = before
		r.pause()
		*a = after
	}
}

// upset is for the bugs that show when a hit was weighed. before is what there was.
func (r *reference) upset(a, before *account, rule *meter.Rule, cost int64, answer *meter.Answer, now int64) {
	switch r.bug {
	case "counts refused costs":
		if !answer.Allowed {
			wide := *rule
			wide.Quota, wide.Burst, wide.Block = 100*rule.Quota, 100*rule.Burst, 0
			_, *a = before.hit(&wide, cost, now)
			a.quota = int(rule.Quota)
		}
	case "equal stamps collapse":
		a.stamps = slices.Compact(a.stamps)
	case "hits prolong a block":
		if !answer.Allowed && rule.Block > 0 {
			a.Block = max(a.Block, now+rule.Block)
		}
	case "a block is cut to its length":
		if !answer.Allowed && now >= before.Block && rule.Block > 0 {
			a.Block = now + rule.Block
		}
	case "starts no block":
		a.Block = 0
	}
}

// misquote is for the bugs of answers alone.
func (r *reference) misquote(d *stores.Decision, h stores.Hit, answer *meter.Answer, a *account, now int64) {
	switch r.bug {
	case "Remaining goes negative":
		if !d.Allowed {
			d.Remaining = -1
		}
	case "RetryAfter is 0 at a refusal":
		d.RetryAfter = 0
	case "RetryAfter beyond the window":
		if !d.Allowed {
			d.RetryAfter, d.ResetAfter = 3*h.Limit.Window, 3*h.Limit.Window
		}
	case "RetryAfter is the end of the window":
		if !d.Allowed {
			d.RetryAfter = max(time.Millisecond, meter.Milliseconds(a.End-now))
		}
	case "RetryAfter is rounded down":
		d.RetryAfter = (time.Duration(answer.Retry) * time.Microsecond).Truncate(4 * time.Millisecond)
	case "RetryAfter is when the whole quota is back":
		if !d.Allowed {
			d.RetryAfter = d.ResetAfter
		}
	case "sets a Delay":
		if h.Limit.Algorithm != stores.Leaky || !d.Allowed {
			d.Delay = time.Millisecond
		}
	case "departures are bunched":
		d.Delay = 0
	case "a departure waits for itself":
		if h.Limit.Algorithm == stores.Leaky && d.Allowed {
			d.Delay += h.Limit.Window / time.Duration(h.Limit.Quota)
		}
	case "Remaining tells the level under a block":
		if !d.Allowed && h.Limit.Block > 0 {
			d.Remaining = 1
		}
	}
}
