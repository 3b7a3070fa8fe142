package storetest

import (
	"context"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// takeOnly hides all but Take.
type takeOnly struct{ stores.Store }

// refuser supports nothing.
type refuser struct{}

func (refuser) Take(context.Context, stores.Hit) (stores.Decision, error) {
	return stores.Decision{}, errUnsupported
}

// hollow has every method and supports none but Take.
type hollow struct{ stores.Store }

func (hollow) Supports(stores.Limit) error { return nil }

func (hollow) Peek(context.Context, stores.Hit) (stores.Decision, error) {
	return stores.Decision{}, errUnsupported
}

func (hollow) Reset(context.Context, stores.Hit) error { return errUnsupported }

func (hollow) Refund(context.Context, stores.Hit) error { return errUnsupported }

func (hollow) TakeAll(context.Context, []stores.Hit, []stores.Decision) (int, error) {
	return 0, errUnsupported
}

func (hollow) TakeOwing(context.Context, stores.Hit, int, time.Duration) (stores.Decision, error) {
	return stores.Decision{}, errUnsupported
}
