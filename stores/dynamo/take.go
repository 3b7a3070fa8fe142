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

	// maxLead is how far beyond now + Window a window may end, in milliseconds, before
	// it is held for the work of a wrong clock: two clocks that are each within
	// maxSkew of the server, and the one second of the Date header.
	maxLead = 5000

	// ttlDelay keeps time to live away from a window that a slow clock holds for
	// live, in seconds.
	ttlDelay = 3600
)

// Take implements stores.Store for fixed windows without a block. It makes one call
// in the common case and never more than four. A cost above the quota is refused
// without one; Remaining is then 0, since nobody was asked. Without a
// deadline in ctx it gives up after 10 s.
//
// RetryAfter and ResetAfter are whole milliseconds, 1 or more, and never above the
// limit's Window (in whole milliseconds). Where the instance that opened the window
// has a clock ahead of this one's, the window ends that much later than told, 5 s at
// most: see the package comment.
func (s *Store) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	if err := s.admit(ctx, hit); err != nil {
		return stores.Decision{}, err
	}
	t := newTaking(s, hit)
	if t.cost > t.quota {
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

// taking is one decision under way. All times are in milliseconds.
type taking struct {
	s                   *Store
	key                 string
	cost, quota, window int64

	// What is to be paid before the hit, 0 to quota, and how long a window stays open
	// that this call opens: window if nothing is owed.
	owed, until int64
}

func newTaking(s *Store, hit stores.Hit) *taking {
	window := milliseconds(hit.Limit.Window)
	return &taking{
		s: s, key: hit.Key,
		cost: int64(max(hit.Cost, 1)), quota: int64(hit.Limit.Quota), window: window, until: window,
	}
}

// run tries the branch that the last end seen suggests. A wrong guess comes back with
// the item, which says which branch is right, or that there is no room. No more than
// one call counts or pays: its answer is the decision.
func (t *taking) run(ctx context.Context) (stores.Decision, error) {
	began := t.s.clock.read()
	branch := &open
	if t.s.windows.end(t.key) > t.s.clock.now(began) {
		branch = t.guess()
	}
	most := maxCalls
	if t.owed > 0 {
		most = maxOwingCalls
	}
	var seen window
	for range most {
		now := t.s.clock.now(began)
		a, err := t.s.update(ctx, began, t.key, branch, t.values(branch, now, seen))
		if err != nil {
			return stores.Decision{}, err
		}
		if a.met && branch != &shorten {
			return t.counted(a, branch, now)
		}
		if a.none() {
			if branch == &open && len(a.item) == 0 {
				// Its condition holds where there is no item: it is there, and not shown.
				return stores.Decision{}, noItem()
			}
			if branch == &open {
				return stores.Decision{}, malformed(updateItem, true)
			}
			branch = &open
			continue
		}
		w, ok := readWindow(a.item)
		if !ok {
			return stores.Decision{}, malformed(updateItem, !a.met)
		}
		seen = w
		now = t.s.clock.now(began) // this answer may have corrected the clock
		next := t.live(w.n)
		switch {
		case w.end <= now:
			branch = &open
		case next != &count && a.agrees && branch != &shorten && w.end-now > t.window+maxLead:
			branch = &shorten
		case next == nil:
			return t.decide(w, false, now), nil
		default:
			branch = next
		}
	}
	return stores.Decision{}, &fault.Error{
		Kind: stores.ErrUnavailable, Definite: true, KeyOnly: seen != window{},
		Text: fmt.Sprintf("dynamo: UpdateItem: the condition failed %d times in a row, against what the item shows", most),
	}
}

// wait returns how long it is from now to end, at most a window: now is when the
// decision began, which may be before the window was opened, and clocks differ.
func (t *taking) wait(end, now int64) time.Duration {
	return time.Duration(min(max(end-now, 1), t.window)) * time.Millisecond
}

// milliseconds rounds up.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
