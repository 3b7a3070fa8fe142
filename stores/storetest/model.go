package storetest

import (
	"math/big"
	"slices"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// model is what a limit means, in the plainest way that it can be said: a history of
// what was admitted, and the level that it makes. It knows no formula for a wait: it
// looks for the moment at which the hit has room. Times are those since some start, and
// above 0.
type model struct {
	limit   stores.Limit
	history history
	blocked time.Duration // until then
}

// history is one key under one algorithm. Levels are exact, not rounded.
type history interface {
	level(at time.Duration) *big.Rat
	// idle tells whether nothing is left of the key but what would be there anyway.
	idle(at time.Duration) bool
	add(at time.Duration, cost int)
	refund(at time.Duration, cost, quota int)
	// pay is for an owed of 1 or more.
	pay(at time.Duration, owed, quota int, until time.Duration)
	requota(at time.Duration, from, to int)
	// edges are the moments at which what a hit does changes at once.
	edges() []time.Duration
	clone() history
}

func newModel(l stores.Limit) *model {
	return &model{limit: l, history: newHistory(l)}
}

func newHistory(l stores.Limit) history {
	switch l.Algorithm {
	case stores.Sliding:
		return &sliding{window: l.Window}
	case stores.Log:
		return &stamps{window: l.Window}
	case stores.Token, stores.Leaky:
		return &bucket{drain: new(big.Rat).SetFrac64(int64(l.Quota), int64(l.Window)), fill: new(big.Rat)}
	}
	return &fixed{window: l.Window}
}

// has room: level + cost <= quota.
func (m *model) hasRoom(at time.Duration, cost int) bool {
	sum := new(big.Rat).SetInt64(int64(cost))
	return sum.Add(sum, m.history.level(at)).Cmp(new(big.Rat).SetInt64(int64(m.limit.Quota))) <= 0
}

func (m *model) passes(at time.Duration, cost int) bool {
	return at >= m.blocked && m.hasRoom(at, cost)
}

// remaining is what is left of the quota, a block apart.
func (m *model) remaining(at time.Duration) int {
	left := new(big.Rat).SetInt64(int64(m.limit.Quota))
	left.Sub(left, m.history.level(at))
	if left.Sign() <= 0 {
		return 0
	}
	return int(new(big.Int).Quo(left.Num(), left.Denom()).Int64())
}

// wait is how long a hit has to wait until it passes, with the block that it would
// start.
func (m *model) wait(at time.Duration, cost int) time.Duration {
	wait := m.until(func(d time.Duration) bool { return m.hasRoom(at+d, cost) })
	switch {
	case at < m.blocked:
		return max(m.blocked-at, wait)
	case wait > 0:
		return max(m.limit.Block, wait)
	}
	return 0
}

func (m *model) reset(at time.Duration) time.Duration {
	return max(m.blocked-at, m.until(func(d time.Duration) bool { return m.history.idle(at + d) }))
}

// until looks for the first moment at which ready holds, and is at most 20 us late:
// every answer is rounded by far more. Without a hit every level only falls, and after
// two windows it is zero.
func (m *model) until(ready func(time.Duration) bool) time.Duration {
	if ready(0) {
		return 0
	}
	before, after := time.Duration(0), 2*m.limit.Window+time.Millisecond
	for after-before > 20*time.Microsecond {
		if middle := (before + after) / 2; ready(middle) {
			after = middle
		} else {
			before = middle
		}
	}
	return after
}

// refused notes a refusal of a hit for which there may be room one day: it starts a
// block, if none is on.
func (m *model) refused(at time.Duration, cost int) {
	if m.limit.Block > 0 && at >= m.blocked {
		m.blocked = at + max(m.limit.Block, m.wait(at, cost))
	}
}

func (m *model) refund(at time.Duration, cost int) {
	m.history.refund(at, min(max(cost, 1), m.limit.Quota), m.limit.Quota)
}

func (m *model) pay(at time.Duration, owed int, until time.Duration) {
	if owed > 0 && until > 0 {
		m.history.pay(at, min(owed, m.limit.Quota), m.limit.Quota, until)
	}
}

func (m *model) setQuota(at time.Duration, quota int) {
	m.history.requota(at, m.limit.Quota, quota)
	m.limit.Quota = quota
}

func (m *model) forget() { m.history, m.blocked = newHistory(m.limit), 0 }

func (m *model) clone() *model {
	return &model{limit: m.limit, history: m.history.clone(), blocked: m.blocked}
}

// near reports whether something changes at once between the two moments. For a hit
// on a log that is no matter: it meets one stamp more or less.
func (m *model) near(from, to time.Duration, hit bool) bool {
	edges := []time.Duration{m.blocked}
	if !hit || m.limit.Algorithm != stores.Log {
		edges = append(edges, m.history.edges()...)
	}
	return slices.ContainsFunc(edges, func(edge time.Duration) bool {
		return from <= edge && edge <= to
	})
}

// event is what was admitted at a moment.
type event struct {
	at   time.Duration
	cost int
}

func total(events []event) (sum int) {
	for _, e := range events {
		sum += e.cost
	}
	return sum
}

// giveBack takes so much from the latest events.
func giveBack(events []event, cost int) []event {
	for cost > 0 && len(events) > 0 {
		last := &events[len(events)-1]
		taken := min(last.cost, cost)
		last.cost -= taken
		cost -= taken
		if last.cost == 0 {
			events = events[:len(events)-1]
		}
	}
	return events
}

func whole(n int) *big.Rat { return new(big.Rat).SetInt64(int64(n)) }
