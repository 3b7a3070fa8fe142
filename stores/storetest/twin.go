package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// twin is a key and the model that lives beside it: each answer is held against the
// model's. What the store does is known to have happened between two moments only, so
// an answer is right if the model gives it at some moment between them, with what a
// store may be off by its own grain. Where the two would go different ways (a window
// ended just then), the twin is lost, and judges nothing from there on.
type twin struct {
	c        *check
	hit      stores.Hit
	model    *model
	start    moment
	slack    time.Duration // how far the moments in the model may be off
	loosened bool          // by a Reset or a Refund, which a store that remembers refusals need not heed at once
	lost     bool
	steps    []string
}

// fineness is how far a store may be off: two whole milliseconds where it may count in
// those, and the one to which it rounds its answers where it may not.
func fineness(a stores.Algorithm) time.Duration {
	if a == stores.Fixed || a == stores.Sliding {
		return grain
	}
	return grain / 2
}

func (c *check) twin(l stores.Limit) *twin {
	return &twin{
		c:     c,
		hit:   stores.Hit{Key: c.keys.next(), Limit: l},
		model: newModel(l),
		start: c.now(),
		slack: fineness(l.Algorithm),
	}
}

// costing and withQuota change the hits to come.
func (w *twin) costing(cost int) *twin {
	w.hit.Cost = cost
	return w
}

func (w *twin) withQuota(quota int) *twin {
	w.model.setQuota(w.now(), quota)
	w.hit.Limit.Quota = quota
	return w
}

func (w *twin) cost() int { return max(w.hit.Cost, 1) }

// before is what the model's clock shows when the twin is made, so that no moment is 0
// or less.
const before = 1000 * time.Hour

// now is the least time that has passed.
func (w *twin) now() time.Duration {
	if w.c.backend.Sleep == nil {
		return before + time.Since(w.start.real)
	}
	least, _ := w.c.since(w.start)
	return before + least
}

// call returns the moments before which and after which do did its work.
func (w *twin) call(do func()) (from, to time.Duration) {
	from = w.now()
	do()
	_, to = w.c.since(w.start)
	return from, max(from, before+to)
}

func (w *twin) take(s stores.Store) stores.Decision {
	w.c.Helper()
	return w.decide("Take", func() stores.Decision { return w.c.take(s, w.hit) }, nil)
}

func (w *twin) peek(p stores.Peeker) stores.Decision {
	w.c.Helper()
	return w.decide("Peek", func() stores.Decision { return w.c.peek(p, w.hit) }, nil)
}

func (w *twin) takeOwing(to stores.Debtor, owed int, until time.Duration) stores.Decision {
	w.c.Helper()
	w.note(fmt.Sprintf("%d owed until %v", owed, until), w.now(), "")
	return w.decide("TakeOwing", func() stores.Decision { return w.c.takeOwing(to, w.hit, owed, until) },
		func(at time.Duration) { w.model.pay(at, owed, until) })
}

func (w *twin) refund(r stores.Refunder) {
	w.c.Helper()
	w.loosened = true
	from, to := w.call(func() { w.c.refund(r, w.hit) })
	w.note("Refund", from, "")
	w.blur(from, to, false)
	w.model.refund(from, w.cost())
}

func (w *twin) reset(r stores.Resetter) {
	w.c.Helper()
	w.loosened = true
	from, _ := w.call(func() { w.c.reset(r, w.hit) })
	w.note("Reset", from, "")
	w.model.forget()
}

// note keeps what was done, for a failure to tell.
func (w *twin) note(method string, at time.Duration, verdict string) {
	w.steps = append(w.steps, fmt.Sprintf("\n\t%v %s %s %s", at-before, method, describe(w.hit), verdict))
}

func (w *twin) trace() string {
	return "\nbefore:" + strings.Join(w.steps[max(0, len(w.steps)-30):], "")
}

// blur notes what is not known about the call's moment.
func (w *twin) blur(from, to time.Duration, hit bool) (early, late time.Duration) {
	early, late = from-w.slack, to+w.slack
	w.lost = w.lost || w.model.near(early, late, hit)
	w.slack = max(w.slack, fineness(w.hit.Limit.Algorithm)+to-from)
	return early, late
}

func (w *twin) decide(method string, ask func() stores.Decision, pay func(time.Duration)) stores.Decision {
	w.c.Helper()
	var d stores.Decision
	from, to := w.call(func() { d = ask() })
	early, late := w.blur(from, to, pay == nil)
	if pay != nil {
		// Of a level that falls, what can be paid may change from the one moment to the
		// other; and what the payment opened may be over.
		w.lost = w.lost || w.hit.Limit.Algorithm == stores.Sliding && w.model.remaining(early) != w.model.remaining(late)
		pay(from)
		w.blur(from, to, false)
	}
	if !w.lost {
		if flaw := w.flaw(method, d, early, late); flaw != "" {
			w.c.Fatalf("%s %s, %v to %v after the key's start: %s: %s%s", method, describe(w.hit), from-before, to-before, state(d), flaw, w.trace())
		}
	}
	w.note(method, from, verdict(d.Allowed))
	switch {
	case d.Allowed && method != "Peek":
		w.model.history.add(from, w.cost())
	case !d.Allowed && method != "Peek" && d.Source != stores.Remembered && w.cost() <= w.hit.Limit.Quota:
		w.model.refused(from, w.cost())
	}
	return d
}

// flaw holds a decision against the model at the two moments. From the one to the
// other all levels and waits only fall, so what is right lies between.
func (w *twin) flaw(method string, d stores.Decision, early, late time.Duration) string {
	m, cost, fine := w.model, w.cost(), fineness(w.hit.Limit.Algorithm)
	switch {
	case cost > m.limit.Quota:
		return ""
	case d.Source == stores.Remembered:
		if !w.loosened && m.passes(early, cost) {
			return "a refusal was remembered for longer than it holds"
		}
		return ""
	case m.passes(early, cost) && !d.Allowed:
		return "want it allowed, since there is room"
	case !m.passes(late, cost) && d.Allowed:
		return fmt.Sprintf("want it refused, since there is room in %v only", m.wait(late, cost))
	}

	first, last := m, m
	if d.Allowed && method != "Peek" {
		first, last = m.clone(), m.clone()
		first.history.add(early, cost)
		last.history.add(late, cost)
	}
	least, most := first.remaining(early), last.remaining(late)
	switch blocks := m.limit.Block > 0 && !d.Allowed; {
	case blocks && (method != "Peek" || late < m.blocked):
		least, most = 0, 0
	case blocks && early < m.blocked:
		least = 0
	}
	if d.Remaining < min(least, most) || d.Remaining > max(least, most) {
		return fmt.Sprintf("want %d to %d remaining", least, most)
	}

	var soonest, latest time.Duration
	if !d.Allowed {
		soonest, latest = m.wait(late, cost), m.wait(early, cost)
		if w.straddles(early) {
			soonest = 0
		}
		if w.uncertain() {
			soonest, latest = 0, w.hit.Limit.Window
		}
		if off(d.RetryAfter, soonest, latest, fine) {
			return fmt.Sprintf("want a RetryAfter of %v to %v, or %v off", soonest, latest, fine)
		}
	}
	one, other := first.reset(early), last.reset(late)
	soonest, latest = max(min(one, other), soonest), max(one, other, latest)
	if w.straddles(early) && !d.Allowed || first.history.level(early).Sign() == 0 {
		soonest = 0 // of a window in which nothing is used, the whole quota is back
	}
	if w.uncertain() {
		soonest, latest = 0, w.hit.Limit.Window
	}
	if off(d.ResetAfter, soonest, latest, fine) {
		return fmt.Sprintf("want a ResetAfter of %v to %v, or %v off", soonest, latest, fine)
	}
	return w.departs(method, d, early, late)
}

// departs: an event that a leaky bucket admits leaves when all before it has drained.
func (w *twin) departs(method string, d stores.Decision, early, late time.Duration) string {
	b, ok := w.model.history.(*bucket)
	if !ok || w.hit.Limit.Algorithm != stores.Leaky || method == "Peek" || !d.Allowed {
		return ""
	}
	soonest, latest := b.departs(late), b.departs(early)
	if fine := fineness(stores.Leaky); off(d.Delay, soonest, latest, fine) {
		return fmt.Sprintf("Delay is %v: want %v to %v, or %v off", d.Delay, soonest, latest, fine)
	}
	return ""
}

func off(d, least, most, fine time.Duration) bool { return d < least-fine || d > most+fine }

// straddles reports whether the moment is so early in a fixed window that a store over
// a network need not tell a refusal by it from one by the window before.
func (w *twin) straddles(early time.Duration) bool {
	f, ok := w.model.history.(*fixed)
	return ok && w.hit.Limit.Block == 0 && early-f.opened < w.c.took+2*grain
}

// uncertain reports whether instances may differ about the end of a fixed window: one
// that knows the end need not ask for it at each hit, and does not learn at once that
// another has given back or forgotten what it saw.
func (w *twin) uncertain() bool {
	return w.loosened && w.hit.Limit.Algorithm == stores.Fixed && w.hit.Limit.Block == 0
}

// clear sleeps until nothing changes at once in the next moments, for a hit or for what
// changes a level by itself.
func (w *twin) clear(hit bool) {
	margin := w.slack + 2*grain
	for range 100 {
		if now := w.now(); !w.model.near(now-margin, now+3*margin, hit) {
			return
		}
		w.c.sleep(margin)
	}
}
