// Package meter is the arithmetic of limits: what an algorithm keeps of a key, and
// what it makes of a hit. It is pure, so that memory, DynamoDB and the fallback mean
// the same by a limit, and so that the Lua scripts have a twin to be held against.
//
// Times are microseconds of whatever clock the caller has, 0 or later; durations are
// microseconds. All products stay below 2^63 for limits that are valid.
//
// A log of time stamps is not here: its state is a list, which each store keeps in
// its own way. What a Rule of stores.Log does here is to count as a log would that has
// lost its stamps.
package meter

import (
	"time"

	"github.com/sallyport/sallyport/stores"
)

// State is what is kept of a key. The zero State is that of a key never seen. What
// the fields mean depends on the algorithm:
//
//	            End                         N             P
//	fixed       end of the window           used
//	sliding     end of the newer window     used in it    used in the older one
//	token/leaky when the bucket is whole again (TAT, the theoretical arrival time)
type State struct {
	End   int64
	N, P  int64
	Block int64 // refused until then
}

// Rule is a limit in numbers.
type Rule struct {
	Algorithm stores.Algorithm
	Quota     int64
	Window    int64
	Block     int64
	Emission  int64 // token, leaky: what one unit of cost adds to the TAT
	Burst     int64 // token, leaky: how far the TAT may lie ahead
}

// Of returns the rule of a valid limit. Parts of a microsecond are rounded up. For a
// bucket it is the time between two units that is rounded, and what fits into the
// bucket is exact.
func Of(l stores.Limit) Rule {
	r := Rule{Algorithm: l.Algorithm, Quota: int64(l.Quota), Window: micros(l.Window), Block: micros(l.Block)}
	if l.Algorithm == stores.Token || l.Algorithm == stores.Leaky {
		r.Emission = (r.Window + r.Quota - 1) / r.Quota
		r.Burst = r.Quota * r.Emission
	}
	return r
}

func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// Answer is a decision in numbers.
type Answer struct {
	Allowed   bool
	Remaining int64
	Retry     int64
	Reset     int64
	Delay     int64
}

// Decision words an answer. Waits are rounded up to the millisecond, so that a client
// that waits as told has waited long enough.
func (a Answer) Decision(source stores.Source) stores.Decision {
	return stores.Decision{
		Allowed:    a.Allowed,
		Source:     source,
		Remaining:  int(a.Remaining),
		RetryAfter: Milliseconds(a.Retry),
		ResetAfter: Milliseconds(a.Reset),
		Delay:      time.Duration(a.Delay) * time.Microsecond,
	}
}

// Milliseconds returns so many microseconds, rounded up to the millisecond.
func Milliseconds(us int64) time.Duration {
	return time.Duration((us+999)/1000) * time.Millisecond
}

// Take decides about a hit, and counts it in s if it is allowed. A refusal changes
// nothing, but that it starts the limit's block: it lasts from the hit that exceeded
// the limit for as long as the limit says, and at least until that hit would pass.
// A cost above the quota can never pass and changes nothing at all.
func (r *Rule) Take(s *State, cost, now int64) Answer {
	a, after := r.weigh(*s, cost, now)
	switch {
	case a.Allowed:
		*s = after
	case r.Block > 0 && cost <= r.Quota && now >= s.Block:
		s.Block = now + a.Retry
	}
	return a
}

// Peek answers as Take would, with Remaining and, if the hit would be allowed, Reset as
// they are before it. It starts no block.
func (r *Rule) Peek(s State, cost, now int64) Answer {
	a, _ := r.weigh(s, cost, now)
	if now >= s.Block {
		a.Remaining = r.room(&s, now)
	}
	if a.Allowed {
		a.Reset = r.reset(&s, now)
		a.Delay = 0
	}
	return a
}

// weigh answers a hit on s, and returns the state behind it if it is allowed.
func (r *Rule) weigh(s State, cost, now int64) (Answer, State) {
	var a Answer
	var wait int64 // until there is room for the hit
	after := s
	switch r.Algorithm {
	case stores.Sliding, stores.Log:
		wait = r.slide(&after, cost, now)
	case stores.Token, stores.Leaky:
		wait, a.Delay = r.pour(&after, cost, now)
	default:
		wait = r.count(&after, cost, now)
	}
	blocked := max(0, s.Block-now)
	if cost <= r.Quota && wait == 0 && blocked == 0 {
		a.Allowed = true
		a.Remaining = r.room(&after, now)
		a.Reset = r.reset(&after, now)
		return a, after
	}
	a.Delay = 0
	switch {
	case cost > r.Quota:
		// It never passes, so there is nothing to wait for.
	case blocked > 0:
		a.Retry = max(blocked, wait)
	default:
		a.Retry = max(r.Block, wait)
	}
	if blocked == 0 && (r.Block == 0 || cost > r.Quota) {
		a.Remaining = r.room(&s, now)
	}
	a.Reset = max(r.reset(&s, now), a.Retry, blocked)
	return a, s
}

// room is how much of the quota is left, a block apart.
func (r *Rule) room(s *State, now int64) int64 {
	return max(0, r.Quota-r.Used(*s, now))
}

// Used is the level of a key: how much of the quota is used, rounded up. After the
// quota was lowered it may be more than that.
func (r *Rule) Used(s State, now int64) int64 {
	switch r.Algorithm {
	case stores.Sliding, stores.Log:
		return r.slid(s, now)
	case stores.Token, stores.Leaky:
		return r.poured(s, now)
	}
	return r.counted(s, now)
}

func (r *Rule) reset(s *State, now int64) int64 {
	if r.windows() == 2 {
		t := *s
		r.roll(&t, now)
		return r.slidingReset(t, now)
	}
	left := max(0, s.End-now)
	if r.Algorithm == stores.Fixed {
		// Another clock may have set the end.
		left = min(left, r.Window)
	}
	return left
}

// windows is the number of windows that the algorithm looks at.
func (r *Rule) windows() int {
	switch r.Algorithm {
	case stores.Sliding, stores.Log:
		return 2
	case stores.Fixed:
		return 1
	}
	return 0
}

// Until is when a state is as good as none.
func (r *Rule) Until(s State) int64 {
	end := s.End
	if s.N > 0 && r.windows() == 2 {
		end += r.Window
	}
	return max(end, s.Block)
}

// Refund gives cost back: of a level above the quota only what the quota has, never
// below zero, and without opening or moving a window. A block stands.
func (r *Rule) Refund(s *State, cost, now int64) {
	cost = min(cost, r.Quota)
	switch r.Algorithm {
	case stores.Sliding, stores.Log:
		r.unslide(s, cost, now)
	case stores.Token, stores.Leaky:
		r.unpour(s, cost, now)
	default:
		r.uncount(s, cost, now)
	}
}

// Pay raises the level to min(quota, level+owed). A window that the payment opens ends
// after until; one that is open keeps its end. A bucket drains by itself, so of until it
// only matters that it is not over.
func (r *Rule) Pay(s *State, owed, until, now int64) {
	if owed <= 0 || until <= 0 {
		return
	}
	owed = min(owed, r.Quota)
	switch r.Algorithm {
	case stores.Sliding, stores.Log:
		r.paySliding(s, owed, until, now)
	case stores.Token, stores.Leaky:
		r.payBucket(s, owed, now)
	default:
		r.payFixed(s, owed, until, now)
	}
}

// Add raises the level by cost, whether there is room or not, to the quota at most.
func (r *Rule) Add(s *State, cost, now int64) { r.Pay(s, cost, r.Window, now) }

// Join brings a to what is known from either of two accounts of one key: neither is
// a whole one, and each level is at least what one of them says.
func (r *Rule) Join(a *State, b State, now int64) {
	if r.windows() == 2 {
		r.roll(a, now)
		r.roll(&b, now)
	}
	if r.Algorithm == stores.Fixed && now >= a.End {
		a.N = 0
	}
	if r.Algorithm == stores.Fixed && now >= b.End {
		b.N = 0
	}
	a.End, a.N, a.P, a.Block = max(a.End, b.End), max(a.N, b.N), max(a.P, b.P), max(a.Block, b.Block)
}

// Share is the rule of an instance that may grant so much of the limit by itself.
func (r Rule) Share(quota int64) Rule {
	r.Quota = quota
	if r.Emission > 0 {
		r.Emission = (r.Window + quota - 1) / quota
		r.Burst = quota * r.Emission
	}
	return r
}
