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
		roomy := k.roomy()
		roomy.Pay(&l.owed.level, cost, until, us)
		l.owed.over = max(l.owed.over, us+until)
		return
	}
	l.owed.drain = min(k.rule.Burst, l.owed.drain+min(cost, k.rule.Quota)*k.rule.Emission)
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
			roomy := k.roomy()
			roomy.Pay(&l.owed.level, owed, k.until(&o, us), us)
			l.owed.over = max(l.owed.over, o.over)
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

// cropped heeds that a payment may have been cut at the quota, where hits that were
// counted without an answer filled the level. Of windows and logs those are over before
// what was paid, so this instance looks to its own for so long.
func (k *metered) cropped(us int64) {
	l, i := k.find()
	if l == nil || us >= l.unheard || k.rule.Algorithm != stores.Log && k.rule.Algorithm != stores.Sliding {
		return
	}
	l.doubtful = max(l.doubtful, k.rule.Until(l.known))
	k.touch(l, i, us)
}

// putAhead adds to what a bucket holds that is not owed.
func (k *metered) putAhead(l *level, cost, us int64) {
	if k.rule.Emission == 0 {
		return
	}
	k.drain(l, us)
	l.ahead = min(max(l.ahead, us)+min(cost, k.rule.Quota)*k.rule.Emission, us+k.rule.Burst)
}
