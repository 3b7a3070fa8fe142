package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

const (
	// maxCalls bounds a decision. Two are enough unless other instances reset or
	// reopen the key between them.
	maxCalls = 4

	// maxOwingCalls bounds a decision with a payment. Two are enough here too; while
	// others pay into the same window five may be needed, and one more moves an
	// end that nobody can have meant.
	maxOwingCalls = 6

	// maxLogCalls bounds a decision of a log: who meets others on the way to a slot tries
	// another one, and each of these calls was lost to one that was carried out.
	maxLogCalls = 12

	// maxLead is how far beyond now + Window a window may end, in milliseconds, before
	// it is held for the work of a wrong clock: two clocks that are each within
	// maxSkew of the server, and the one second of the Date header.
	maxLead = 5000

	// ttlDelay keeps time to live away from a window that a slow clock holds for
	// live, in seconds.
	ttlDelay = 3600
)

// Take implements stores.Store. It makes one call in the common case: for a key that is
// new, or over, or refused, or that this instance knows. It makes two for one that
// it does not know, and for a hit that starts a block. While others write to the key it
// makes four at most, or twelve for a log, and one or two more to start a block. A cost above
// the quota is refused without one; Remaining is then 0, since nobody was
// asked. Without a deadline in ctx it gives up after 10 s.
//
// RetryAfter and ResetAfter are whole milliseconds, and never longer than the limit can
// make them by one clock: its Window (two for Sliding), or its Block if that is longer.
// Where the instance that wrote last has a clock ahead of this one's, what it wrote ends
// that much later than told, 5 s at most: see the package comment.
//
// A refusal stands although the block that it was to start could not be written. Its
// RetryAfter is then as short as it were without a block.
func (s *Store) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	if err := s.admit(ctx, hit); err != nil {
		return stores.Decision{}, err
	}
	t := newTaking(s, hit)
	if t.cost > t.rule.Quota {
		return stores.Decision{}, nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	return t.run(ctx)
}

// TakeAll implements stores.Batcher, one hit after the other: transactions cost twice
// as much and fail each other on a busy key.
func (s *Store) TakeAll(ctx context.Context, hits []stores.Hit, out []stores.Decision) (int, error) {
	if len(out) < len(hits) {
		return 0, fmt.Errorf("%w: dynamo: room for %d decisions about %d hits", stores.ErrInvalid, len(out), len(hits))
	}
	for i, hit := range hits {
		d, err := s.Take(ctx, hit)
		if err != nil {
			return i, err
		}
		if out[i] = d; !d.Allowed {
			return i + 1, nil
		}
	}
	return len(hits), nil
}

// run tries the call that fits what was seen last. A wrong guess comes back with
// the item, which says which call is right, or that there is no room. No more than
// one call counts or pays: its answer is the decision.
func (t *taking) run(ctx context.Context) (stores.Decision, error) {
	began := t.s.clock.read()
	now := t.now(began)
	c := t.write(t.recall(now), now)
	var s state
	for i := range t.most() {
		a, err := t.s.update(ctx, began, t.key, c)
		if err != nil {
			return stores.Decision{}, err
		}
		if a.met && !c.mends {
			return t.counted(ctx, began, a, c)
		}
		var ok bool
		if s, ok = t.read(a.item); !ok {
			return stores.Decision{}, malformed(updateItem, !a.met)
		}
		now = t.seenAt(began, i)
		if c.fresh && !c.held && !s.there && s.Block <= now {
			// Its condition holds where there is no item: it is there, and not shown.
			if len(a.item) == 0 {
				return stores.Decision{}, noItem()
			}
			return stores.Decision{}, malformed(updateItem, true)
		}
		mended := c.mends
		if c = t.write(&s, now); c != nil && c.hit {
			continue
		}
		if a.agrees && !mended {
			if m := t.mend(&s, now); m != nil {
				c = m
				continue
			}
		}
		if c == nil {
			return t.refuse(ctx, began, &s, now)
		}
	}
	return stores.Decision{}, &fault.Error{
		Kind: stores.ErrUnavailable, Definite: true, KeyOnly: s.there,
		Text: fmt.Sprintf("dynamo: UpdateItem: the condition failed %d times in a row, against what the item shows", t.most()),
	}
}

// seenAt is the time by which what the answer to call i shows is judged: that at which
// the decision began, by a clock that the answer may have corrected. So what others
// write meanwhile is live, and two calls are enough.
//
// A bucket's level falls all the time, and by an earlier clock than that of the hits that
// are in it they would weigh more than they do: of a hundred at once not all that
// fit would be let in. So it is first judged by the time at which it was seen.
func (t *taking) seenAt(began time.Time, i int) int64 {
	if t.rule.Emission > 0 && i == 0 {
		began = t.s.clock.read()
	}
	return t.now(began)
}

func (t *taking) most() int {
	switch {
	case t.rule.Algorithm == stores.Log:
		return maxLogCalls
	case t.owed > 0:
		return maxOwingCalls
	}
	return maxCalls
}
