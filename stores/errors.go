package stores

import (
	"errors"
	"fmt"
)

// The kinds of failure. Test for them with [errors.Is]; a store wraps them in an
// error that says more, and that never holds a key, a token, an address or an
// e-mail. When the caller's own context was over before anything was sent, its
// error is returned as it is, and nothing was counted.
//
// What a store does not offer is an error that wraps [errors.ErrUnsupported].
var (
	// ErrUnavailable: the store could not be asked, or its answer made no sense.
	// It may have counted the hit.
	ErrUnavailable = errors.New("store unavailable")

	// ErrThrottled: the store refused the work, for a moment (too many requests)
	// or for longer (a used-up quota of commands).
	ErrThrottled = errors.New("store throttled")

	// ErrMisconfigured: a token, a right, a table or an address is wrong, and
	// trying again does not help.
	ErrMisconfigured = errors.New("store misconfigured")

	// ErrInvalid: the hit or the limit is outside the bounds that [Hit.Validate]
	// and [Limit.Validate] check. Nothing was counted.
	ErrInvalid = errors.New("invalid")

	// ErrHotKey: this key alone is throttled, others are not. It is an
	// ErrThrottled too.
	ErrHotKey error = fmt.Errorf("%w: one key is too hot", ErrThrottled)
)
