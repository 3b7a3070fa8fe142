package storetest

import (
	"math/big"
	"slices"
	"time"
)

// fixed is a window that opens at the first hit and forgets all at its end.
type fixed struct {
	window      time.Duration
	opened, end time.Duration
	events      []event
}

func (f *fixed) idle(at time.Duration) bool { return at >= f.end }

func (f *fixed) level(at time.Duration) *big.Rat {
	if f.idle(at) {
		return whole(0)
	}
	return whole(total(f.events))
}

func (f *fixed) add(at time.Duration, cost int) {
	f.open(at, f.window)
	f.events = append(f.events, event{at, cost})
}

// open opens a window unless one is open.
func (f *fixed) open(at, length time.Duration) {
	if f.idle(at) {
		f.opened, f.end, f.events = at, at+length, nil
	}
}

func (f *fixed) refund(at time.Duration, cost, quota int) {
	if !f.idle(at) {
		f.events = giveBack(f.events, cost+max(0, total(f.events)-quota))
	}
}

func (f *fixed) pay(at time.Duration, owed, quota int, until time.Duration) {
	f.open(at, until)
	if owed = min(owed, quota-total(f.events)); owed > 0 {
		f.events = append(f.events, event{at, owed})
	}
}

func (f *fixed) requota(time.Duration, int, int) {}

func (f *fixed) edges() []time.Duration { return []time.Duration{f.end} }

func (f *fixed) clone() history {
	c := *f
	c.events = slices.Clone(f.events)
	return &c
}

// sliding is a chain of windows, each opening where the one before ends, as long as
// there was something in that one. What came in the latest counts whole, and what came
// in the one before by the part of that window which the last window's length covers.
type sliding struct {
	window       time.Duration
	end          time.Duration // of the latest window
	newer, older []event
}

// now brings the chain to a moment.
func (s *sliding) now(at time.Duration) *sliding {
	c := s.clone().(*sliding)
	if at >= c.end {
		c.older, c.newer, c.end = c.newer, nil, c.end+c.window
		if len(c.older) == 0 || at >= c.end {
			c.older, c.end = nil, 0
		}
	}
	return c
}

func (s *sliding) level(at time.Duration) *big.Rat {
	c := s.now(at)
	left := max(0, min(c.window, c.end-at))
	older := new(big.Rat).SetFrac64(int64(left), int64(c.window))
	older.Mul(older, whole(total(c.older)))
	return older.Add(older, whole(total(c.newer)))
}

func (s *sliding) idle(at time.Duration) bool { return s.level(at).Sign() == 0 }

func (s *sliding) add(at time.Duration, cost int) {
	*s = *s.now(at)
	if s.end == 0 {
		s.end = at + s.window
	}
	s.newer = append(s.newer, event{at, cost})
}

// refund takes from the newer window first. Neither holds more than the quota when it
// is asked to give.
func (s *sliding) refund(at time.Duration, cost, quota int) {
	*s = *s.now(at)
	s.newer = giveBack(s.newer, max(0, total(s.newer)-quota))
	there := total(s.newer)
	s.newer = giveBack(s.newer, cost)
	if rest := cost - there; rest > 0 {
		s.older = giveBack(s.older, rest+max(0, total(s.older)-quota))
	}
}

func (s *sliding) pay(at time.Duration, owed, quota int, until time.Duration) {
	*s = *s.now(at)
	if s.end == 0 {
		s.end = at + until
	}
	room := new(big.Rat).Sub(whole(quota), s.level(at))
	if room.Sign() > 0 {
		whole := int(new(big.Int).Quo(room.Num(), room.Denom()).Int64())
		if owed = min(owed, whole); owed > 0 {
			s.newer = append(s.newer, event{at, owed})
		}
	}
}

func (s *sliding) requota(time.Duration, int, int) {}

func (s *sliding) edges() []time.Duration {
	if s.end == 0 {
		return nil
	}
	return []time.Duration{s.end, s.end + s.window}
}

func (s *sliding) clone() history {
	c := *s
	c.newer, c.older = slices.Clone(s.newer), slices.Clone(s.older)
	return &c
}
