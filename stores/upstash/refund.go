package upstash

import (
	"context"

	"github.com/sallyport/sallyport/stores"
)

// Refund implements [stores.Refunder] by the script, in one exchange. A refund can't be
// repeated: after an error that is not definite it may have been made.
//
// A level that is above the quota, since the quota was lowered, is first brought down to
// it; so is a counter that refused hits of cost 1 drove above it.
func (s *Store) Refund(ctx context.Context, hit stores.Hit) error {
	a, err := s.check(hit)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if a.way == counter {
		// The count falls, and the known one would make the next hit look like one in
		// another window. Both before and after: see Reset.
		s.windows.forget(hit.Key)
		defer s.windows.forget(hit.Key)
	}
	_, err = s.askAlone(ctx, refund, hit.Key, a)
	return err
}

// askAlone has the script take a step other than take, for one key.
func (s *Store) askAlone(ctx context.Context, step, key string, a args) (row []int64, err error) {
	rows, err := s.evaluate(ctx, step, []asked{{args: a, key: key}})
	if err == nil && !a.sound(step, rows) {
		err = malformed("an answer to a script that makes no sense")
	}
	return rows, err
}
