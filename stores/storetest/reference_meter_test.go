package storetest

import (
	"slices"
	"time"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// account is what the reference keeps of a key of any limit but a fixed window without
// a block. All but a log it counts by the module's own arithmetic, so that the clauses,
// which have arithmetic of their own, are held against that too.
type account struct {
	meter.State
	stamps []int64 // of a log, one for each unit of cost, in order
	credit int64   // only by a bug
	quota  int     // of the latest hit
	opened int64
}

func metered(l stores.Limit) bool { return l.Algorithm != stores.Fixed || l.Block != 0 }

func (r *reference) account(h stores.Hit) *account {
	a := r.accounts[r.key(h.Key)]
	if a == nil {
		a = &account{quota: h.Limit.Quota}
		r.accounts[r.key(h.Key)] = a
	}
	return a
}

func (r *reference) micros() int64 { return r.now().UnixMicro() }

// idle reports whether nothing of the key counts any more.
func (a *account) idle(rule *meter.Rule, now int64) bool {
	if rule.Algorithm == stores.Log {
		return len(live(a.stamps, rule.Window, now)) == 0
	}
	return now >= rule.Until(meter.State{End: a.End, N: a.N})
}

func live(stamps []int64, window, now int64) []int64 {
	i := slices.IndexFunc(stamps, func(s int64) bool { return now < s+window })
	if i < 0 {
		return nil
	}
	return stamps[i:]
}

// hit decides about a hit and counts it.
func (a *account) hit(rule *meter.Rule, cost, now int64) (meter.Answer, account) {
	after := *a
	if rule.Algorithm != stores.Log {
		answer := rule.Take(&after.State, cost, now)
		return answer, after
	}
	after.stamps = slices.Clone(live(a.stamps, rule.Window, now))
	var wait int64
	if over := int64(len(after.stamps)) + cost - rule.Quota; over > 0 {
		wait = after.stamps[over-1] + rule.Window - now
	}
	answer := meter.Answer{Allowed: wait == 0 && now >= a.Block}
	if answer.Allowed {
		after.stamps = append(after.stamps, slices.Repeat([]int64{now}, int(cost))...)
	} else {
		answer.Retry = max(wait, rule.Block)
		if now < a.Block {
			answer.Retry = max(wait, a.Block-now)
		} else if rule.Block > 0 {
			after.Block = now + answer.Retry
		}
	}
	if answer.Allowed || rule.Block == 0 {
		answer.Remaining = max(0, rule.Quota-int64(len(after.stamps)))
	}
	answer.Reset = answer.Retry
	if n := len(after.stamps); n > 0 {
		answer.Reset = max(answer.Reset, after.stamps[n-1]+rule.Window-now)
	}
	return answer, after
}

func (a *account) look(rule *meter.Rule, cost, now int64) meter.Answer {
	if rule.Algorithm != stores.Log {
		return rule.Peek(a.State, cost, now)
	}
	answer, _ := a.hit(rule, cost, now)
	stamps := live(a.stamps, rule.Window, now)
	if now >= a.Block {
		answer.Remaining = max(0, rule.Quota-int64(len(stamps)))
	}
	if answer.Allowed {
		answer.Reset = 0
		if n := len(stamps); n > 0 {
			answer.Reset = stamps[n-1] + rule.Window - now
		}
	}
	return answer
}

func (a *account) giveBack(rule *meter.Rule, cost, now int64) {
	if rule.Algorithm != stores.Log {
		rule.Refund(&a.State, cost, now)
		return
	}
	stamps := live(a.stamps, rule.Window, now)
	stamps = stamps[max(0, len(stamps)-int(rule.Quota)):]
	a.stamps = slices.Clone(stamps[:max(0, len(stamps)-int(min(cost, rule.Quota)))])
}

func (a *account) pay(rule *meter.Rule, owed, until, now int64) {
	if rule.Algorithm != stores.Log {
		rule.Pay(&a.State, owed, until, now)
		return
	}
	a.stamps = slices.Clone(live(a.stamps, rule.Window, now))
	if owed = min(owed, rule.Quota-int64(len(a.stamps))); owed > 0 && until > 0 {
		a.stamps = append(a.stamps, slices.Repeat([]int64{now + until - rule.Window}, int(owed))...)
		slices.Sort(a.stamps)
	}
}

func (r *reference) takeMetered(h stores.Hit, cost, owed int, until time.Duration) stores.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.micros()
	a := r.account(h)
	rule := meter.Of(h.Limit)
	units := int64(cost)
	r.disturb(a, &rule, &units, now)
	before := a.copy()
	if owed > 0 {
		r.payMetered(a, &rule, int64(owed), until.Microseconds(), now)
	}
	paid := a.copy()
	answer, after := a.hit(&rule, units, now)
	if r.has("checks, then acts") || r.has("two may open a window") && before.idle(&rule, now) {
		r.pause()
	}
	*a = after
	a.quota = h.Limit.Quota
	if r.has("a payment is lost with a refused hit") && !answer.Allowed {
		paid = before
		*a = before
	}
	r.upset(a, &paid, &rule, units, &answer, now)
	d := answer.Decision(stores.Shared)
	r.misquote(&d, h, &answer, a, now)
	return d
}

func (a *account) copy() account {
	c := *a
	c.stamps = slices.Clone(a.stamps)
	return c
}

func (r *reference) peekMetered(h stores.Hit) stores.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.micros()
	a := r.account(h)
	rule := meter.Of(h.Limit)
	answer := a.look(&rule, int64(max(h.Cost, 1)), now)
	switch {
	case r.has("Peek starts a block") && !answer.Allowed && rule.Block > 0 && now >= a.Block:
		a.Block = now + answer.Retry
	case r.has("Peek opens a window") && a.idle(&rule, now):
		_, after := a.hit(&rule, 1, now)
		after.giveBack(&rule, 1, now)
		after.End = now + rule.Window/2
		*a = after
	}
	d := answer.Decision(stores.Shared)
	switch {
	case r.has("Peek always allows"):
		d.Allowed, d.RetryAfter = true, 0
	case r.has("Peek tells what remains after the hit") && d.Allowed:
		d.Remaining -= max(h.Cost, 1)
	}
	return d
}

func (r *reference) refundMetered(h stores.Hit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.micros()
	a := r.account(h)
	rule := meter.Of(h.Limit)
	before := a.copy()
	cost := int64(max(h.Cost, 1))
	a.giveBack(&rule, cost, now)
	switch r.bug {
	case "Refund gives nothing back":
		*a = before
	case "Refund opens a window":
		if before.idle(&rule, now) {
			a.End = now + rule.Window
		}
	case "Refund gives 1 back":
		*a = before
		a.giveBack(&rule, 1, now)
	case "Refund of a missing key is credit":
		if before.idle(&rule, now) {
			a.credit += min(cost, rule.Quota)
		}
	case "Refund goes below zero":
		if used := int64(h.Limit.Quota) - before.look(&rule, 1, now).Remaining; cost > used {
			a.credit += min(cost, rule.Quota) - used
		}
	case "Refund counts from the level":
		*a = before
		wide := h.Limit
		wide.Quota = max(wide.Quota, 10)
		rule = meter.Of(wide)
		a.giveBack(&rule, cost, now)
	case "Refund prolongs the window":
		if before.idle(&rule, now) {
			break
		}
		a.End = max(a.End, now+rule.Window)
		for i := range a.stamps {
			a.stamps[i] = now
		}
	case "Refund lifts a block":
		a.Block = 0
	case "Refund of an older window counts from its level":
		if rest := cost - min(before.N, rule.Quota); rest > 0 {
			a.P = max(0, before.P-rest)
		}
	case "Refund takes from the older window first":
		if taken := min(before.P, cost); taken > 0 && now < before.End {
			*a = before
			a.P -= taken
		}
	case "a refund is lost when two refund at once":
		after := a.copy()
		*a = before
		r.pause()
		*a = after
	}
}

func (r *reference) resetMetered(h stores.Hit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.account(h)
	switch {
	case r.has("Reset keeps the count"):
	case r.has("Reset forgets everybody"):
		clear(r.accounts)
	case r.has("Reset heeds the cost") && h.Cost > h.Limit.Quota:
	case r.has("Reset keeps the block"):
		*a = account{State: meter.State{Block: a.Block}}
	default:
		delete(r.accounts, r.key(h.Key))
	}
}
