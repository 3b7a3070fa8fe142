package failover

import (
	"time"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// send notes that the hit is asked of the shared store, and hands it what of the
// key's debt has not fallen off to pay. For the rest see windowed.send.
func (k *metered) send(now, due int64) (d debt, wait <-chan struct{}, err error) {
	us := now / nanos
	k.table.Lock()
	defer k.table.Unlock()
	if l, _ := k.find(); l != nil && l.paying > 0 {
		if wait := k.payments.of(k.hash); wait != nil {
			return debt{}, wait, nil
		}
		l.paying = 0
	}
	ours := k.brought.owed == 0
	l, i := k.open(us)
	before := k.owing(l, us) > 0
	k.own(us)
	if k.doubted(l, us) {
		return debt{}, nil, errDoubtful
	}
	if ours && k.rule.Algorithm == stores.Fixed && k.owing(l, us) > 0 && l.owed.level.End < due/nanos {
		return debt{}, nil, errEnding
	}
	if owed := k.owing(l, us); owed > 0 {
		d = debt{
			owed:   owed,
			until:  meter.Milliseconds(k.until(&l.owed, us)),
			level:  l.owed,
			ours:   before,
			opened: int64(l.resets),
			done:   k.payments.begin(k.hash),
		}
		l.paying = owed
		l.owed = owedLevel{}
	}
	l.crowded = l.crowded || l.pending > 0
	l.pending += k.cost
	k.touch(l, i, us)
	return d, nil, nil
}

// doubted tells whether the hit might be let through by the shared store only
// because it does not know of all that was let through here, or of a block that began
// here.
func (k *metered) doubted(l *level, us int64) bool {
	return us < l.blocked || us < l.doubtful && !k.rule.Peek(k.whole(l, us), k.cost, us).Allowed
}

func (k *metered) doubts(now int64) bool {
	us := now / nanos
	k.table.Lock()
	defer k.table.Unlock()
	l, _ := k.find()
	return l != nil && k.doubted(l, us)
}

// charge takes what is owed out of what the shared store told when it was only looked
// at, as it would be taken out before a hit.
func (k *metered) charge(d *stores.Decision, now int64) {
	us := now / nanos
	k.table.Lock()
	defer k.table.Unlock()
	l, _ := k.find()
	if l == nil {
		return
	}
	owed := l.paying + k.owing(l, us)
	if owed == 0 {
		return
	}
	s := said(&k.rule, d, us)
	k.rule.Add(&s, owed, us)
	a := k.rule.Peek(s, k.cost, us).Decision(d.Source)
	d.Remaining = min(d.Remaining, a.Remaining)
	d.ResetAfter = max(d.ResetAfter, a.ResetAfter)
	if d.Allowed && !a.Allowed {
		d.Allowed, d.RetryAfter = false, a.RetryAfter
	}
}

// back takes back what send noted, and tells whether the hit was alone on its way.
func (k *metered) back(d debt) (alone bool) {
	last := d.owed > 0 && k.payments.end(k.hash, d.done)
	l, _ := k.find()
	if l == nil {
		return false
	}
	l.pending = max(0, l.pending-k.cost)
	if last {
		l.paying = 0
	}
	alone = l.pending == 0 && !l.crowded
	l.crowded = l.crowded && l.pending > 0
	return alone
}

// settled gives a level that nothing is learned about the time for which it is worth
// keeping, now that a hit is no longer on its way.
func (k *metered) settled(us int64) {
	if l, i := k.find(); l != nil {
		k.touch(l, i, us)
	}
}

// failed takes back a hit that the shared store did not answer. What of a debt that
// certainly was not paid has not fallen off meanwhile is owed again; an uncertain one
// counts as paid, since it must not be paid twice.
func (k *metered) failed(d debt, certainlyNot bool, now int64) {
	us := now / nanos
	k.table.Lock()
	defer k.table.Unlock()
	k.back(d)
	l, i := k.find()
	if l == nil {
		return
	}
	if !certainlyNot {
		l.unheard = us + 2*k.rule.Window
	}
	switch {
	case d.owed == 0 || int64(l.resets) != d.opened:
	case !certainlyNot:
		k.paid(d, us)
		l.doubtful = max(l.doubtful, k.rule.Until(l.known))
	default:
		k.oweAgain(l, d.level, us)
	}
	k.touch(l, i, us)
}

// own adds what the hit brought. The caller has the lock.
func (k *metered) own(us int64) {
	b := k.brought
	if k.brought = (brought{}); b.owed == 0 || b.until == 0 {
		return
	}
	l, i := k.open(us)
	until := (b.until + nanos - 1) / nanos
	k.rule.Pay(&l.known, b.owed, until, us)
	k.owe(l, b.owed, until, us)
	k.touch(l, i, us)
}

// keep adds what the hit brought where nobody is asked about it.
func (k *metered) keep(now int64) {
	if k.brought.owed == 0 {
		return
	}
	k.table.Lock()
	defer k.table.Unlock()
	k.own(now / nanos)
}

func (f *fallback) setOwing(l *level, owing bool) {
	switch {
	case owing && !l.owing:
		f.debts.Add(1)
	case !owing && l.owing:
		f.debts.Add(-1)
	}
	l.owing = owing
}

// said is the state that a decision of the shared store tells of, or a fuller one: of
// a window's use it does not say when it came.
func said(r *meter.Rule, d *stores.Decision, us int64) meter.State {
	used, reset := r.Quota-int64(d.Remaining), micros(d.ResetAfter)
	var s meter.State
	if r.Block > 0 && !d.Allowed && d.RetryAfter > 0 {
		s.Block = us + micros(d.RetryAfter)
	}
	if used <= 0 {
		return s
	}
	s.N, s.End = used, us+min(reset, r.Window)
	switch r.Algorithm {
	case stores.Sliding:
		// Two windows until all is back, or the older one is all there is.
		if reset > r.Window {
			s.End = us + min(reset-r.Window, r.Window)
		} else {
			s.N, s.P = 0, min(r.Quota, (used*r.Window+reset-1)/max(1, reset))
		}
	case stores.Log:
		s.N, s.P = 0, used
	case stores.Token, stores.Leaky:
		s.N = 0
		if s.Block > 0 {
			s.End = us + used*r.Emission
		} else {
			s.End = us + min(reset, r.Burst)
		}
	}
	return s
}

func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }
