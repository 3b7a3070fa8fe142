package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// Refund implements stores.Refunder by one UpdateItem, or two where less is counted than
// is given back. It is not idempotent: after an error that is not definite the
// cost may have been given back.
func (s *Store) Refund(ctx context.Context, hit stores.Hit) error {
	if err := s.admit(ctx, hit); err != nil {
		return err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	began := s.clock.read()
	cost := int64(max(hit.Cost, 1))
	branch, seen := &giveBack, int64(0)
	for range maxCalls {
		now := s.clock.now(began)
		values := map[string]types.AttributeValue{":now": number(now)}
		if branch == &giveBack {
			values[":c"], values[":least"] = number(-cost), number(cost)
		} else {
			values[":zero"], values[":seen"] = number(0), number(seen)
		}
		a, err := s.update(ctx, began, hit.Key, branch, values)
		if err != nil {
			return err
		}
		if a.met || a.none() {
			return nil
		}
		w, ok := readWindow(a.item)
		switch {
		case !ok:
			return malformed(updateItem, true)
		case w.end <= s.clock.now(began) || w.n == 0:
			return nil
		case w.n >= cost:
			branch = &giveBack
		default:
			branch, seen = &empty, w.n
		}
	}
	return &fault.Error{
		Kind: stores.ErrUnavailable, Definite: true, KeyOnly: true,
		Text: "dynamo: UpdateItem: the item changed four times while a cost was given back",
	}
}
