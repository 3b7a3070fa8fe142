package dynamo

import (
	"time"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// taking is one decision under way. All times are in the units of its limit's items.
type taking struct {
	s    *Store
	key  string
	rule meter.Rule
	unit time.Duration // a millisecond or a microsecond
	cost int64         // quota+1 for all that is above the quota

	// What is to be paid before the hit, 0 to quota, and how long a window stays open
	// that this call opens: the limit's window if nothing is owed.
	owed, until int64
}

func newTaking(s *Store, hit stores.Hit) *taking {
	l := hit.Limit
	t := &taking{s: s, key: hit.Key}
	switch l.Algorithm {
	case stores.Fixed, stores.Sliding:
		t.unit = time.Millisecond
		t.rule = meter.Rule{Algorithm: l.Algorithm, Quota: int64(l.Quota), Window: t.units(l.Window), Block: t.units(l.Block)}
	default:
		t.unit = time.Microsecond
		t.rule = meter.Of(l)
	}
	t.cost = min(int64(max(hit.Cost, 1)), t.rule.Quota+1)
	t.until = t.rule.Window
	return t
}

// units rounds up.
func (t *taking) units(d time.Duration) int64 { return int64((d + t.unit - 1) / t.unit) }

// now is the corrected time of a local reading.
func (t *taking) now(local time.Time) int64 {
	if t.unit == time.Millisecond {
		return t.s.clock.now(local)
	}
	return t.s.clock.micros(local)
}

// lead is maxLead in the limit's units.
func (t *taking) lead() int64 { return int64(maxLead * time.Millisecond / t.unit) }

// longest is how long a key can keep what it was given, a block apart, by one clock.
func (t *taking) longest() int64 {
	switch t.rule.Algorithm {
	case stores.Sliding:
		return 2 * t.rule.Window
	case stores.Token, stores.Leaky:
		return t.rule.Burst
	}
	return t.rule.Window
}

// timeToLive is an hour or more after all that a write leaves behind is over, in seconds.
func (t *taking) timeToLive(s *state, now int64) int64 {
	until := max(now+t.longest(), s.Block)
	return until/int64(time.Second/t.unit) + 1 + ttlDelay
}

// need is what the hit takes: more than there is while a block is on.
func (t *taking) need(s *state, now int64) int64 {
	if s.Block > now {
		return t.rule.Quota + 1
	}
	return t.cost
}

// bind makes a call that is carried out only while the block is as it was seen.
func (t *taking) bind(c *claim, s *state, now int64, values map[string]int64) *call {
	g := unguarded
	switch {
	case t.rule.Block == 0:
	case s.Block > now:
		g = held
	default:
		g = free
	}
	values[":now"], values[":b"], values[":zero"], values[":x"] = now, s.Block, 0, t.timeToLive(s, now)
	b := c[g].bind(values)
	b.at, b.held = now, g == held
	return b
}

// step is what is written of a payment and a hit.
type step uint8

const (
	nothing step = iota
	both
	owedAlone
	owedInPart
)

// step concludes it from a level. What is only guessed to be refused is asked for.
func (t *taking) step(s *state, level, full, owed, need int64) step {
	room := full - owed // for the level, so that what is owed fits in whole
	switch {
	case level <= room-need:
		return both
	case s.guessed && (owed == 0 || level >= full):
		return both
	case owed == 0 || level >= full:
		return nothing
	case level <= room:
		return owedAlone
	}
	return owedInPart
}

// write is the call that the hit and the payment before it need where the item is as
// it was seen, or nil if the hit is refused and there is nothing to write.
func (t *taking) write(s *state, now int64) *call {
	switch t.rule.Algorithm {
	case stores.Log:
		return t.log(s, now)
	case stores.Token, stores.Leaky:
		return t.bucket(s, now)
	case stores.Sliding:
		return t.sliding(s, now)
	}
	return t.fixed(s, now)
}
