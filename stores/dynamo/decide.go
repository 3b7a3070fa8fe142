package dynamo

import (
	"context"
	"time"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// counted reads the answer to a call whose condition held. What such an answer
// can't say was counted, perhaps, but is no decision.
func (t *taking) counted(ctx context.Context, began time.Time, a answer, c *call) (stores.Decision, error) {
	s, ok := t.read(a.item)
	if !ok || !t.shows(&s, c) {
		return stores.Decision{}, malformed(updateItem, false)
	}
	if !c.hit {
		return t.refuse(ctx, began, &s, c.at)
	}
	t.learn(&s, c.at)
	return t.decision(t.admitted(&s, c)), nil
}

// admitted words what the item shows after a hit. What is left in a bucket is told by
// the clock as it is now, see seenAt; all else by that of the call.
func (t *taking) admitted(s *state, c *call) meter.Answer {
	a := t.peek(s, 0, c.at)
	if t.rule.Emission > 0 {
		now := t.now(t.s.clock.read())
		a.Remaining = max(0, min(t.peek(s, 0, now).Remaining, t.rule.Quota-t.cost))
	}
	a.Allowed, a.Retry = true, 0
	a.Delay = t.delay(s, c.at)
	return a
}

// shows reports that an item is as it can be after the call, whatever others did
// before it.
func (t *taking) shows(s *state, c *call) bool {
	level, live := s.N, s.End > c.at
	switch t.rule.Algorithm {
	case stores.Log:
		for i, slot := range c.slots {
			if s.slots[slot] != c.stamps[i] {
				return false
			}
		}
		return s.there
	case stores.Token, stores.Leaky:
		level = s.End
	}
	return s.there && live && level >= c.least && level <= c.most &&
		(c.end == 0 || s.End == c.end) && (c.older == anything || s.P == c.older)
}

// refuse words a refusal, and starts the block that it is to start.
func (t *taking) refuse(ctx context.Context, began time.Time, s *state, now int64) (stores.Decision, error) {
	t.learn(s, now)
	after := *s
	a := t.weigh(&after, now)
	if a.Allowed && t.rule.Algorithm == stores.Log {
		// It was refused by what was seen before the payment, and others gave back since.
		return t.decision(meter.Answer{Remaining: t.peek(s, t.cost, now).Remaining, Retry: 1, Reset: a.Reset}), nil
	}
	if a.Allowed {
		return stores.Decision{}, malformed(updateItem, false)
	}
	if after.Block != s.Block {
		a = t.block(ctx, began, s, &after, a, now)
	}
	return t.decision(a), nil
}

// weigh answers the hit on s, and notes in s the block that it starts.
func (t *taking) weigh(s *state, now int64) meter.Answer {
	if t.rule.Algorithm == stores.Log {
		return t.weighLog(s, t.cost, now)
	}
	return t.rule.Take(&s.State, t.cost, now)
}

func (t *taking) peek(s *state, cost, now int64) meter.Answer {
	if t.rule.Algorithm == stores.Log {
		return t.peekLog(s, cost, now)
	}
	return t.rule.Peek(s.State, cost, now)
}

// decision puts an answer into the caller's units. No wait is longer than one clock can
// make it: now is when the decision began, which may be before others wrote,
// and clocks differ.
func (t *taking) decision(a meter.Answer) stores.Decision {
	longest := max(t.longest(), t.rule.Block)
	return stores.Decision{
		Allowed:    a.Allowed,
		Remaining:  int(a.Remaining),
		RetryAfter: t.wait(min(a.Retry, longest)),
		ResetAfter: t.wait(min(a.Reset, longest)),
		Delay:      time.Duration(a.Delay) * t.unit,
	}
}

// wait is rounded up to milliseconds, so that who waits as told has waited long enough.
func (t *taking) wait(units int64) time.Duration {
	if t.unit == time.Millisecond {
		return time.Duration(units) * time.Millisecond
	}
	return meter.Milliseconds(units)
}
