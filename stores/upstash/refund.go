package upstash

import (
	"context"

	"github.com/sallyport/sallyport/stores"
)

// Refund implements [stores.Refunder] by the script: one exchange of four commands,
// three if nothing was used, two if the key is not there. A refund can't be repeated:
// after an error that is not definite it may have been made.
//
// A counter that refused hits of cost 1 drove above the quota is first brought back to
// it. Where the quota was lowered meanwhile, that is the lower one.
func (s *Store) Refund(ctx context.Context, hit stores.Hit) error {
	a, err := s.check(hit)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	a.step = refund
	// The count falls, and the known one would make the next hit look like one in
	// another window. Both before and after: see Reset.
	s.windows.forget(hit.Key)
	defer s.windows.forget(hit.Key)
	reply, err := s.evaluate(ctx, hit.Key, a)
	if err != nil {
		return err
	}
	if reply[0] != 1 || reply[1] < 0 || reply[1] > a.quota || reply[2] < -2 {
		return malformed("an answer to a script that makes no sense")
	}
	return nil
}
