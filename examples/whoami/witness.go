package main

import (
	"context"

	"github.com/sallyport/sallyport/stores"
)

// witness is a store that counts nothing and allows everything. It notes the keys that
// the guard gives it: those that a shared store would get.
type witness struct{}

type seenKey struct{}

// seen are the hits of one request, in the order in which the policies were asked.
type seen struct{ hits []stores.Hit }

// Take implements stores.Store. The guard asks about one policy after the other, within
// the request and with its context.
func (witness) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	if s, ok := ctx.Value(seenKey{}).(*seen); ok {
		s.hits = append(s.hits, hit)
	}
	return stores.Decision{Allowed: true, Remaining: hit.Limit.Quota}, nil
}
