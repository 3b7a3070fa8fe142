package stores

import (
	"fmt"
	"time"
)

// Source says who decided.
type Source uint8

// The sources. Exactly one of them decides about a hit.
const (
	Shared     Source = iota // the store that all instances see counted the hit
	Local                    // this process counted it
	Remembered               // an earlier refusal of the shared store, which still holds
	None                     // nobody counted it: OutageAllow, OutageRefuse
)

var sourceNames = [...]string{Shared: "shared", Local: "local", Remembered: "remembered", None: "none"}

// String returns "shared", "local", "remembered" or "none".
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return fmt.Sprintf("Source(%d)", uint8(s))
}

// Decision is what a store answers to a Hit.
type Decision struct {
	// Allowed tells whether the hit was within the limit. If it was, it is counted;
	// if not, nothing changed, but that the hit may have started the limit's Block.
	Allowed bool

	// Source is Local from package memory and what is true from package failover; a
	// store of your own leaves it Shared.
	Source Source

	// Remaining is how much of the quota is left after this hit, rounded down and
	// never negative. It is 0 while a block is on.
	Remaining int

	// RetryAfter is, for a refused hit, how long to wait until this same hit passes
	// if nobody else hits meanwhile. It is 0 when Allowed, and for a refusal that can
	// never pass (a cost above the quota). Where a block is on or starts, it lasts at
	// least to the block's end.
	RetryAfter time.Duration

	// ResetAfter is how long it takes until the whole quota is back if nobody hits; of
	// a refusal it is never less than RetryAfter. It is at most the limit's Window,
	// two of them for Sliding, and the Block if that is longer.
	ResetAfter time.Duration

	// Delay is for LeakyBucket: how long the admitted event should wait for its
	// departure. It is 0 for a refused hit and for other limits. No store and no guard
	// waits for you.
	Delay time.Duration

	// Fault is why the shared store did not decide, nil if it did. Only package
	// failover sets it.
	Fault error
}
