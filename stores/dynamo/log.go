package dynamo

import (
	"slices"

	"github.com/sallyport/sallyport/internal/meter"
)

// maxLog is the largest quota of a log. An item is billed by the kilobyte, which
// about eighty stamps fill, and an expression may hold 300 operators.
const maxLog = 100

// A log: as many slots as the quota allows, each with the time of one admitted unit
// of cost. A stamp counts while now < stamp + Window.

// stamps returns those of s that count, the oldest first.
func (t *taking) stamps(s *state, now int64) []int64 {
	var live []int64
	for _, stamp := range s.slots {
		if stamp > now-t.rule.Window {
			live = append(live, stamp)
		}
	}
	slices.Sort(live)
	return live
}

// weighLog answers a hit, and notes the block that it starts, as meter.Rule.Take does
// for other limits.
func (t *taking) weighLog(s *state, cost, now int64) meter.Answer {
	r, live := &t.rule, t.stamps(s, now)
	level, blocked := int64(len(live)), max(0, s.Block-now)
	a := meter.Answer{Reset: t.resetOfLog(live, now)}
	if cost > r.Quota {
		if blocked == 0 {
			a.Remaining = max(0, r.Quota-level)
		}
		a.Reset = max(a.Reset, blocked)
		return a
	}
	var wait int64
	if over := level + cost - r.Quota; over > 0 {
		// When so many of the oldest are gone.
		wait = min(live[over-1]+r.Window-now, r.Window)
	}
	switch {
	case wait == 0 && blocked == 0:
		a.Allowed = true
		a.Remaining = r.Quota - level - cost
		a.Reset = r.Window
		return a
	case blocked > 0:
		a.Retry = max(blocked, wait)
	default:
		a.Retry = max(r.Block, wait)
		if r.Block > 0 {
			s.Block = now + a.Retry
		} else {
			a.Remaining = max(0, r.Quota-level)
		}
	}
	a.Reset = max(a.Reset, a.Retry)
	return a
}

// peekLog answers as weighLog, with Remaining and Reset as they are before the hit.
func (t *taking) peekLog(s *state, cost, now int64) meter.Answer {
	looked := *s
	a := t.weighLog(&looked, cost, now)
	live := t.stamps(s, now)
	if now >= s.Block {
		a.Remaining = max(0, t.rule.Quota-int64(len(live)))
	}
	if a.Allowed {
		a.Reset = t.resetOfLog(live, now)
	}
	return a
}

// resetOfLog is when the newest stamp is over; another clock may have set it.
func (t *taking) resetOfLog(live []int64, now int64) int64 {
	if len(live) == 0 {
		return 0
	}
	return min(live[len(live)-1]+t.rule.Window-now, t.rule.Window)
}

// hintOfLog is what is worth knowing of a log: which slots are free, and which one will
// be next.
func (t *taking) hintOfLog(s *state, now int64) (end int64, seen hint) {
	oldest := int64(maxExact)
	for i, stamp := range s.slots {
		if stamp <= now-t.rule.Window {
			continue
		}
		seen.taken[i/64] |= 1 << (i % 64)
		end = max(end, stamp+t.rule.Window)
		if stamp < oldest {
			oldest = stamp
			seen.n, seen.p = stamp+t.rule.Window, int64(i)
		}
	}
	return end, seen
}

// slots are those that a hint tells of: a slot is free, or it holds now.
func (h *hint) slots(end, now int64) *[maxLog]int64 {
	all := new([maxLog]int64)
	if end <= now {
		return all
	}
	for i := range all {
		if h.taken[i/64]&(1<<(i%64)) != 0 {
			all[i] = now
		}
	}
	if h.n <= now && h.p >= 0 && h.p < maxLog {
		all[h.p] = 0
	}
	return all
}
