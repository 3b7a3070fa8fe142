package stores

import (
	"fmt"
	"time"
)

// Algorithm is the way in which a Limit counts. The zero value is Fixed.
type Algorithm uint8

// The algorithms. The constructors named in brackets make limits of them.
const (
	Fixed   Algorithm = iota // a window that opens at the key's first hit [FixedWindow]
	Sliding                  // two counters, the older one weighted by its overlap [SlidingWindow]
	Log                      // one time stamp for each admitted event [SlidingLog]
	Token                    // a bucket that refills steadily, as GCRA [TokenBucket]
	Leaky                    // admitted events get evenly spaced departures [LeakyBucket]
)

var algorithmNames = [...]string{Fixed: "fixed", Sliding: "sliding", Log: "log", Token: "token", Leaky: "leaky"}

// String returns "fixed", "sliding", "log", "token" or "leaky", the words that
// [ParseLimit] reads.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return fmt.Sprintf("Algorithm(%d)", uint8(a))
}

// The bounds of a Limit. Numbers stay below 2^53, because Lua in Redis and some
// DynamoDB engines keep them as doubles.
const (
	minWindow  = time.Millisecond
	maxWindow  = 10 * 365 * 24 * time.Hour
	maxInteger = 1<<53 - 1
)

// Limit says how much of something is allowed. It is comparable and may be a map
// key. The zero Limit is invalid: make one with [FixedWindow] and its kin or with
// [ParseLimit].
//
// Stores may count in whole milliseconds; they round a part of one up. What they hold
// of a key is kept when only Quota changes, and the new one applies at once: of a
// window or a log to what was counted, of a bucket to the share of it that is full.
type Limit struct {
	Algorithm Algorithm
	Quota     int           // 1 or more; for Token and Leaky the capacity
	Window    time.Duration // 1 ms to 10 years; for Token and Leaky the time in which an empty bucket fills
	Block     time.Duration // once exceeded, refuse for this long: 1 ms to 10 years; 0: no block
}

// FixedWindow allows quota hits in a window that opens at the key's first hit. At
// the seam of two windows up to twice the quota can pass within one window's
// length.
func FixedWindow(quota int, window time.Duration) Limit {
	return Limit{Algorithm: Fixed, Quota: quota, Window: window}
}

// SlidingWindow keeps two counters of one window each and weights the older by the
// part of it that still lies within the last window: it takes the level to be
//
//	used = newer + older * left / window
//
// where left is what the newer window has still to go, and never lets it exceed the
// quota. The first window opens at the key's first hit, so that no client knows an
// edge that all keys share; after two windows without a hit the key is as new. It is
// an estimate: hits that came at the end of the older window count for less than they
// are, and then more than the quota may pass in an interval as long as the window.
func SlidingWindow(quota int, window time.Duration) Limit {
	return Limit{Algorithm: Sliding, Quota: quota, Window: window}
}

// SlidingLog never lets more than quota hits pass in any interval as long as the
// window: a hit that is admitted counts until it is a window old. It keeps a time
// stamp for each unit of cost, so stores serve it up to a quota that they name.
func SlidingLog(quota int, window time.Duration) Limit {
	return Limit{Algorithm: Log, Quota: quota, Window: window}
}

// TokenBucket allows capacity hits at once and refills steadily, so that an empty
// bucket is full after fill: TokenBucket(20, 4*time.Second) allows 20 at once, then
// 5 a second. It is counted as GCRA, the generic cell rate algorithm of ITU-T I.371,
// and what it takes to refill one unit is rounded up to the microsecond.
func TokenBucket(capacity int, fill time.Duration) Limit {
	return Limit{Algorithm: Token, Quota: capacity, Window: fill}
}

// LeakyBucket admits what fits into a bucket of this capacity that drains wholly
// in drain, and says by [Decision.Delay] how long an admitted event should wait to
// keep an even distance from the one before it. It admits what a [TokenBucket] does;
// who waits as told leaves no sooner than the event before has drained.
func LeakyBucket(capacity int, drain time.Duration) Limit {
	return Limit{Algorithm: Leaky, Quota: capacity, Window: drain}
}

// Cooldown allows one hit in d. It is FixedWindow(1, d).
func Cooldown(d time.Duration) Limit { return FixedWindow(1, d) }

// BlockFor returns l with a block: whoever exceeds the limit is refused for d, counted
// from the hit that exceeded it, or until that hit would pass, if that is later.
// Hits during the block change nothing and do not prolong it, while the window, the
// bucket or the log below it goes on as ever. A cost above the quota starts no block.
func (l Limit) BlockFor(d time.Duration) Limit {
	l.Block = d
	return l
}

// Validate reports whether l lies within the bounds that its fields name, and
// within those of its arithmetic: a Quota below 2^53; for Sliding, Quota times the
// window in milliseconds below 2^53; for Token and Leaky, at least one microsecond
// of the Window for each unit of the Quota. The error wraps [ErrInvalid] and names
// what was expected. It does not allocate when l is valid.
func (l Limit) Validate() error {
	if int(l.Algorithm) >= len(algorithmNames) {
		return fmt.Errorf("%w limit: unknown algorithm %d", ErrInvalid, uint8(l.Algorithm))
	}
	if l.Quota < 1 || int64(l.Quota) > maxInteger {
		return fmt.Errorf("%w limit: a quota of %d: want 1 to 2^53-1", ErrInvalid, l.Quota)
	}
	if l.Window < minWindow || l.Window > maxWindow {
		return fmt.Errorf("%w limit: a window of %s: want 1ms to 10 years (87600h)", ErrInvalid, l.Window)
	}
	if l.Block != 0 && (l.Block < minWindow || l.Block > maxWindow) {
		return fmt.Errorf("%w limit: a block of %s: want none, or 1ms to 10 years (87600h)", ErrInvalid, l.Block)
	}
	switch l.Algorithm {
	case Sliding:
		ms := int64((l.Window + time.Millisecond - 1) / time.Millisecond)
		if int64(l.Quota) > maxInteger/ms {
			return fmt.Errorf("%w limit: quota %d times window %s overflows: shorten the window or lower the quota", ErrInvalid, l.Quota, l.Window)
		}
	case Token, Leaky:
		if int64(l.Quota) > int64(l.Window/time.Microsecond) {
			return fmt.Errorf("%w limit: %d in %s is more than one a microsecond", ErrInvalid, l.Quota, l.Window)
		}
	}
	return nil
}
