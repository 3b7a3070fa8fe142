package upstash

import (
	"context"
	"fmt"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// TakeOwing implements [stores.Debtor]: the payment and the hit are one step of the
// script, and cost what [Store.Take] costs with a cost above 1. until counts in whole
// milliseconds, a part of one rounded up. A payment stands though the hit is refused,
// also one with a cost above the quota. After an error that is definite nothing was
// paid; after another one it may have been, and must not be paid again.
//
// If owed or until is 0 this is Take. A negative owed, or an until outside of 0 to the
// limit's Window, is an error that wraps [stores.ErrInvalid].
func (s *Store) TakeOwing(ctx context.Context, hit stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	a, err := s.check(hit)
	if err != nil {
		return stores.Decision{}, err
	}
	if owed < 0 || until < 0 || until > hit.Limit.Window {
		return stores.Decision{}, fmt.Errorf("%w debt: upstash: %d until %s", stores.ErrInvalid, owed, until)
	}
	if owed == 0 || until == 0 {
		return s.Take(ctx, hit)
	}
	if err := ctx.Err(); err != nil {
		return stores.Decision{}, err
	}
	a.owed, a.until = min(int64(owed), a.quota), milliseconds(until)
	d, _, err := s.takeScripted(ctx, hit, a)
	return d, err
}
