package stores

import (
	"context"
	"time"
)

// Store counts hits. All methods of a Store, and of the optional interfaces below,
// are safe for concurrent use, also by many processes over the same data.
type Store interface {
	// Take checks the hit against its limit and, if it is allowed, counts it, in one
	// atomic step. A refusal is a Decision, never an error. It changes nothing: without
	// the refused hits of a history every later decision is the same. The one
	// exception is a limit with a Block, which a hit that is refused for lack of room
	// starts, in the same step.
	//
	// An error means that no decision was reached. It wraps ErrInvalid (from
	// Hit.Validate, which Take calls first), errors.ErrUnsupported (a limit or a cost
	// that this store can't serve), one of ErrUnavailable, ErrThrottled and
	// ErrMisconfigured, or it is ctx's own error. When ctx is done beforehand nothing
	// is sent and nothing is counted. Take has to heed ctx's deadline: a caller has no other
	// way to be rid of a call that hangs.
	Take(ctx context.Context, hit Hit) (Decision, error)
}

// The interfaces below are optional. Assert for them once and heed
// errors.ErrUnsupported: an implementation that wraps another store has every
// method and returns it where the inner store lacks one.

// Batcher decides about several hits with as few round trips as the store allows.
type Batcher interface {
	// TakeAll takes hits in order and stops after the first refusal: out[:n] is
	// decided, and the hits behind a refusal are not counted. If err is not nil,
	// hits[n] is undecided and later ones were not tried. len(out) must be at least
	// len(hits). Neither slice is kept.
	//
	// A store that remembers refusals may find one before it charges any hit; the
	// decisions before it then say Allowed from the Source None.
	TakeAll(ctx context.Context, hits []Hit, out []Decision) (n int, err error)
}

// Peeker looks without counting.
type Peeker interface {
	// Peek answers as Take would at this moment, with Remaining as it is now, before
	// the hit. It writes nothing, and starts no block.
	Peek(ctx context.Context, hit Hit) (Decision, error)
}

// Resetter forgets.
type Resetter interface {
	// Reset forgets all that was counted under the hit's key, and a block too; a key
	// that is not there is no error. The hit's Cost is ignored.
	Reset(ctx context.Context, hit Hit) error
}

// Refunder gives back.
type Refunder interface {
	// Refund gives the hit's Cost back to its key. The level becomes
	// max(0, min(level, quota) - cost): never below zero used, and of a level that a
	// lowered quota left above it only what the quota has. No window is opened, moved
	// or extended, and a block stands. A key that is not there, or whose window is
	// over, is no error and gets nothing.
	//
	// Of two windows the newer gives first, and the older what is still missing, each
	// capped at the quota. A log gives its newest stamps back, and a leaky bucket its
	// last departure, whichever event had it.
	Refund(ctx context.Context, hit Hit) error
}

// Debtor takes what was let through elsewhere out of the quota.
type Debtor interface {
	// TakeOwing raises the key's level to min(quota, level+owed), never lowering it,
	// then takes the hit by the common rule, in one atomic step. The payment stands
	// although the hit is refused; it neither starts nor ends a block. With an owed or
	// an until of 0 it is Take; a negative one, or an until beyond the Window, is
	// ErrInvalid.
	//
	// A fixed or sliding window that the payment opens ends after until, not after the
	// limit's Window; no payment moves the end of a window that is open. In a log what
	// is paid is over after until. A bucket drains what is paid at its own pace.
	TakeOwing(ctx context.Context, hit Hit, owed int, until time.Duration) (Decision, error)
}

// Supporter tells at construction what would fail at each request.
type Supporter interface {
	// Supports returns nil if the store can serve the limit, and else an error that
	// wraps errors.ErrUnsupported and names the alternatives. It asks no server.
	Supports(limit Limit) error
}
