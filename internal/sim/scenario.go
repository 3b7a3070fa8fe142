package sim

import (
	"math/rand/v2"
	"time"
)

// Length is how long each simulation lasts, in virtual time. The outages that are one
// piece last from Begin to End.
const (
	Length = 6 * time.Minute
	Begin  = 90 * time.Second
	End    = 270 * time.Second
)

// Scenario is what the shared store, and the way to it, are like.
type Scenario struct {
	Name string
	Skew time.Duration // clocks lie between so far behind and so far ahead
	// Sound: no call fails. Calls may nevertheless be late.
	Sound bool
	// Outage: all calls fail from Begin to End, which is in the attacker's second window
	// when he is refused already.
	Outage bool

	bad func(at time.Duration) bool
	ill func(*rand.Rand) fate // when it is bad
}

// fate is what becomes of one call.
type fate struct {
	refused               bool // at once, and certainly not counted
	lostBefore, lostAfter bool // cut before or after it is counted
	out, back             time.Duration
}

const never = 24 * time.Hour

func (s Scenario) fate(at time.Duration, rng *rand.Rand) fate {
	if s.bad != nil && s.bad(at) {
		return s.ill(rng)
	}
	return fate{out: between(rng, 2, 10), back: between(rng, 2, 10)}
}

func between(rng *rand.Rand, low, high int) time.Duration {
	return time.Duration(low)*time.Millisecond + time.Duration(rng.Int64N(int64(high-low)*int64(time.Millisecond)))
}

func once(at time.Duration) bool { return at >= Begin && at < End }

func everyOtherSecond(at time.Duration) bool { return int(at/time.Second)%2 == 1 }

// Scenarios are all that is tried.
var Scenarios = []Scenario{
	{Name: "healthy", Sound: true},
	{Name: "clocks 10 s off", Sound: true, Skew: 10 * time.Second},
	{Name: "hard outage", Outage: true, bad: once, ill: func(*rand.Rand) fate { return fate{refused: true} }},
	{Name: "black hole", Outage: true, bad: once, ill: func(*rand.Rand) fate { return fate{out: never} }},
	{Name: "slow store", bad: once, ill: func(rng *rand.Rand) fate {
		return fate{out: between(rng, 100, 300), back: between(rng, 100, 500)}
	}},
	{Name: "flapping each second", bad: everyOtherSecond, ill: func(*rand.Rand) fate { return fate{refused: true} }},
	{Name: "flapping, hits lost", bad: everyOtherSecond, ill: func(rng *rand.Rand) fate {
		return fate{out: between(rng, 2, 10), lostBefore: true}
	}},
	{Name: "answers lost, hits counted", Outage: true, bad: once, ill: func(rng *rand.Rand) fate {
		return fate{out: between(rng, 2, 10), lostAfter: true}
	}},
	{Name: "answers lost, hits not counted", Outage: true, bad: once, ill: func(rng *rand.Rand) fate {
		return fate{out: between(rng, 2, 10), lostBefore: true}
	}},
}
