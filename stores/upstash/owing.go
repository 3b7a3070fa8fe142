package upstash

import (
	"context"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// TakeOwing implements [stores.Debtor]: the payment and the hit are one step of the
// script, and cost what [Store.Take] costs by it. until counts in whole milliseconds, of a
// fixed window with a block, a bucket and a log in whole microseconds; a part of one is
// rounded up. A payment stands though the hit is refused, also one with a cost above the
// quota. After an error that is definite nothing was paid; after another one it may have
// been, and must not be paid again.
//
// If owed or until is 0 this is Take. A negative owed, or an until outside of 0 to the
// limit's Window, is an error that wraps [stores.ErrInvalid].
func (s *Store) TakeOwing(ctx context.Context, hit stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	a, err := s.check(hit)
	if err != nil {
		return stores.Decision{}, err
	}
	if err := a.owing(hit.Limit, owed, until); err != nil {
		return stores.Decision{}, err
	}
	d, _, err := s.takeChecked(ctx, hit.Key, a)
	return d, err
}
