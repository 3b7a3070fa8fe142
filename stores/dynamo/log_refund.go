package dynamo

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// giveBackLog overwrites stamps with one that is long over: first, of a level above the
// quota, the oldest surplus, then so many of the newest as are given back.
//
// Who gives back while others do the same would lose the newest ones to them again and
// again: after a few tries it takes any. The level is the same, and ends no sooner.
func (t *taking) giveBackLog(s *state, now int64, try int) *call {
	if s == nil {
		return look.bind(map[string]int64{":zero": 0})
	}
	live := t.liveSlots(s, now)
	surplus := max(0, len(live)-int(t.rule.Quota))
	rest, cost := live[surplus:], int(t.cost)
	switch {
	case cost >= len(rest):
	case try > 2:
		rest = pick(rest, cost)
	default:
		rest = rest[len(rest)-cost:]
	}
	m := newMending(now)
	for _, slot := range append(live[:surplus:surplus], rest...) {
		m.move(slotName(slot), s.slots[slot], longOver)
	}
	if m.conditions == nil {
		return nil
	}
	return m.done()
}

// liveSlots returns those whose stamps count, the oldest first, and of equal ones any
// first: else all who give back at once would want the same one.
func (t *taking) liveSlots(s *state, now int64) []int {
	var live []int
	for _, i := range rand.Perm(maxLog) {
		if s.slots[i] > now-t.rule.Window {
			live = append(live, i)
		}
	}
	slices.SortStableFunc(live, func(a, b int) int { return cmp.Compare(s.slots[a], s.slots[b]) })
	return live
}

// longOver is a stamp that counts for nothing.
const longOver = 1
