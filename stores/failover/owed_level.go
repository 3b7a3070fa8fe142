package failover

import (
	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// owedLevel is a debt that falls off as time goes on. Of windows and logs each event
// falls off by itself, so there it is a level of the limit's kind. A bucket drains at
// one rate, whatever is in it, and what the shared store knows of, or may know of, drains
// first: there it is the time that the rest takes to drain.
type owedLevel struct {
	level meter.State
	drain int64 // microseconds
	since int64 // when drain was right
	over  int64 // of windows and logs, when the last event has fallen off
}

// drain brings a debt to now.
func (k *metered) drain(l *level, us int64) {
	k.settle(&l.owed, l.ahead, us)
}

func (k *metered) settle(o *owedLevel, ahead, us int64) {
	if k.rule.Emission == 0 {
		if us >= o.over {
			o.level = meter.State{}
		}
		return
	}
	if idle := us - max(o.since, ahead); idle > 0 {
		o.drain = max(0, o.drain-idle)
	}
	o.since = max(o.since, us)
}

// owing is what is owed of a key, in units of the quota, rounded up.
func (k *metered) owing(l *level, us int64) int64 {
	k.drain(l, us)
	if k.rule.Emission == 0 {
		return min(k.rule.Quota, k.rule.Used(l.owed.level, us))
	}
	return min(k.rule.Quota, (l.owed.drain+k.rule.Emission-1)/k.rule.Emission)
}

// until is how long it takes until the debt is over, more than none and at most a window.
func (k *metered) until(o *owedLevel, us int64) int64 {
	switch {
	case k.rule.Emission > 0:
		return k.rule.Window
	case k.rule.Algorithm == stores.Fixed:
		return min(k.rule.Until(o.level)-us, k.rule.Window)
	}
	return min(o.over-us, k.rule.Window)
}

// owe adds to the debt what ends after until.
func (k *metered) owe(l *level, cost, until, us int64) {
	k.drain(l, us)
	if k.rule.Emission == 0 {
		k.pile(l, cost, until, us)
		return
	}
	l.owed.drain = min(k.rule.Burst, l.owed.drain+min(cost, k.rule.Quota)*k.rule.Emission)
}

// pile adds to a debt that is a level what ends after until. Of a fixed window the whole
// debt ends with the last of it: what was let through in the window that follows must not
// be forgotten with what was owed before.
func (k *metered) pile(l *level, owed, until, us int64) {
	roomy := k.roomy()
	roomy.Quota = max(roomy.Quota, owed) // of a hit whose quota is lower than that of those before
	roomy.Pay(&l.owed.level, owed, until, us)
	l.owed.over = max(l.owed.over, us+until)
	if k.rule.Algorithm == stores.Fixed {
		l.owed.level.End = max(l.owed.level.End, us+until)
	}
}

// ends is after how long what is let through here now is over: with the window that it
// is in, of a fixed one.
func (k *metered) ends(l *level, us int64) int64 {
	if k.rule.Algorithm == stores.Fixed {
		return min(l.known.End-us, k.rule.Window)
	}
	return k.rule.Window
}

// roomy is the rule by which a debt adds up. What a log's older window counts is partly
// over, and must not take the place of what has just come.
func (k *metered) roomy() meter.Rule {
	r := k.rule
	if r.Algorithm == stores.Log {
		r.Quota *= 4
	}
	return r
}

// oweAgain adds what of a debt has not fallen off since it was sent.
func (k *metered) oweAgain(l *level, o owedLevel, us int64) {
	k.drain(l, us)
	k.settle(&o, l.ahead, us)
	if k.rule.Emission == 0 {
		if owed := k.rule.Used(o.level, us); owed > 0 {
			k.pile(l, owed, k.until(&o, us), us)
		}
		return
	}
	l.owed.drain = min(k.rule.Burst, l.owed.drain+o.drain)
}

// forgive takes a hit that is given back out of the debt.
func (k *metered) forgive(l *level, us int64) {
	k.drain(l, us)
	if k.rule.Emission == 0 {
		k.rule.Refund(&l.owed.level, k.cost, us)
		return
	}
	l.owed.drain = max(0, l.owed.drain-k.cost*k.rule.Emission)
}

// paid moves a debt that was paid, or may have been, to what is not owed.
func (k *metered) paid(d debt, us int64) {
	if l, _ := k.find(); l != nil && d.owed > 0 && int64(l.resets) == d.opened {
		k.putAhead(l, d.owed, us)
	}
}

// cropped heeds that a payment may have been cut at the quota, where the level was full of
// hits that were counted without an answer, or of an earlier payment, all of which is
// taken to have come with the last of it. Of windows and logs those are over before what
// was paid, so this instance looks to its own for so long.
func (k *metered) cropped(d debt, us int64) {
	l, i := k.find()
	if l == nil || !d.ours && us >= l.unheard || k.rule.Algorithm != stores.Log && k.rule.Algorithm != stores.Sliding {
		return
	}
	l.doubtful = max(l.doubtful, k.rule.Until(l.known))
	k.touch(l, i, us)
}

// lowered tells whether more is known to be used than the hit's quota, which then is lower
// than that of hits before it. The shared store says nothing of what is beyond it, and
// cuts a payment there.
func (k *metered) lowered(d debt, us int64) bool {
	l, i := k.find()
	if l == nil || k.rule.Emission > 0 || k.rule.Used(l.known, us) <= k.rule.Quota {
		return false
	}
	if d.ours && int64(l.resets) == d.opened {
		l.doubtful = max(l.doubtful, k.rule.Until(l.known))
		k.touch(l, i, us)
	}
	return true
}

// putAhead adds to what a bucket holds that is not owed.
func (k *metered) putAhead(l *level, cost, us int64) {
	if k.rule.Emission == 0 {
		return
	}
	k.drain(l, us)
	l.ahead = min(max(l.ahead, us)+min(cost, k.rule.Quota)*k.rule.Emission, us+k.rule.Burst)
}
