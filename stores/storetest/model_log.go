package storetest

import (
	"math/big"
	"slices"
	"time"
)

// stamps are the events of a log, each of which counts until it is a window old.
type stamps struct {
	window time.Duration
	events []event // in the order of their times
}

func (s *stamps) live(at time.Duration) []event {
	first := slices.IndexFunc(s.events, func(e event) bool { return at < e.at+s.window })
	if first < 0 {
		return nil
	}
	return slices.Clone(s.events[first:])
}

func (s *stamps) level(at time.Duration) *big.Rat { return whole(total(s.live(at))) }

func (s *stamps) idle(at time.Duration) bool { return len(s.live(at)) == 0 }

// add keeps what is over, since a moment that is known between bounds only may lie
// before its end.
func (s *stamps) add(at time.Duration, cost int) {
	s.events = append(s.events, event{at, cost})
	slices.SortStableFunc(s.events, func(a, b event) int { return int(a.at - b.at) })
}

// refund gives the newest back. What is above the quota, since that was lowered, is of
// the oldest.
func (s *stamps) refund(at time.Duration, cost, quota int) {
	s.events = s.live(at)
	for surplus := total(s.events) - quota; surplus > 0; {
		taken := min(surplus, s.events[0].cost)
		surplus -= taken
		if s.events[0].cost -= taken; s.events[0].cost == 0 {
			s.events = s.events[1:]
		}
	}
	s.events = giveBack(s.events, cost)
}

// pay adds events of such an age that they are over after until.
func (s *stamps) pay(at time.Duration, owed, quota int, until time.Duration) {
	if owed = min(owed, quota-total(s.live(at))); owed > 0 {
		s.add(at+until-s.window, owed)
	}
}

func (s *stamps) requota(time.Duration, int, int) {}

func (s *stamps) edges() (all []time.Duration) {
	for _, e := range s.events {
		all = append(all, e.at+s.window)
	}
	return all
}

func (s *stamps) clone() history { return &stamps{s.window, slices.Clone(s.events)} }
