package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// TakeOwing implements stores.Debtor. The payment and the hit are one write. It makes
// one or two calls where nobody else writes to the key meanwhile, three where an end
// that nobody can have meant has to be moved first, and never more than six (twelve
// for a log), and one or two more to start a block. Without a deadline in ctx it gives
// up after 10 s.
//
// The payment stands although the hit is refused, also one with a cost above the
// quota or in a block. After an error that is definite, nothing was paid; after any
// other, it may have been, and must not be paid again. If owed or until is
// 0 this is Take: a debt that ends at once is none. A negative owed, or an until outside
// of 0 to the limit's Window, is an error that wraps stores.ErrInvalid. until is rounded
// up (to milliseconds for windows, to microseconds for logs) and runs by this
// instance's clock: see the package comment.
func (s *Store) TakeOwing(ctx context.Context, hit stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	if err := s.admit(ctx, hit); err != nil {
		return stores.Decision{}, err
	}
	if owed < 0 || until < 0 || until > hit.Limit.Window {
		return stores.Decision{}, fmt.Errorf("%w debt: dynamo: %d until %s", stores.ErrInvalid, owed, until)
	}
	if owed == 0 || until == 0 {
		return s.Take(ctx, hit)
	}
	t := newTaking(s, hit)
	t.owed, t.until = min(int64(owed), t.rule.Quota), t.units(until)
	ctx, cancel := bounded(ctx)
	defer cancel()
	return t.run(ctx)
}
