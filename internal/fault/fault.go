// Package fault is the error with which the kit's shared stores report that they
// did not decide. Beside the public kind it carries what package failover has to
// know: whether the hit certainly was not counted, and whether the fault heals by
// itself in seconds.
package fault

import "errors"

// Error is a failure of a shared store.
type Error struct {
	// Kind is one of the kinds of package stores: ErrUnavailable, ErrThrottled,
	// ErrHotKey, ErrMisconfigured.
	Kind error

	// Text says what happened, for an operator. It holds no key, token, client
	// address or e-mail, and of a server's own words only a bounded, printable part.
	Text string

	// Cause may be nil. It is there for errors.Is and errors.As only and is never
	// printed, because the texts of net/http and of servers repeat URLs and commands.
	Cause error

	// Definite: the hit was certainly not counted (nothing was sent, or an answer
	// said so). False: it may have been.
	Definite bool

	// Lasting: trying again in a few seconds is no use (a quota used up for the
	// month, a wrong token).
	Lasting bool

	// KeyOnly: the fault lies with this key (its type, its size, its partition) and
	// tells nothing of others.
	KeyOnly bool

	// Stale: a connection that had served before was found dead, as after a freeze or a
	// peer's idle timeout. That tells nothing of the store.
	Stale bool
}

// Error returns Text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns Kind and Cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// Definite reports whether err says that the hit certainly was not counted. An
// error of another store says nothing, and then it may have been.
func Definite(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Definite
}
