package handler

import (
	"fmt"

	"github.com/sallyport/sallyport/stores"
)

// Mode says what a policy's refusal does. The zero value is Enforce.
type Mode uint8

// The modes. Policies are asked in the order given, and all of them count; only an
// Enforce refusal ends the chain, and policies behind it are not charged.
const (
	// Enforce refuses the request.
	Enforce Mode = iota

	// Report refuses nobody: it counts, and Config.Observe sees what it would have
	// done. For trying a limit out. A body that its key can't read counts for the
	// client's address, and the log says so.
	Report

	// Signal lets the handler run and tell, by [FromContext], whether the policy
	// allowed it. It is for endpoints whose answer must be the same for everybody,
	// such as a password reset: status, headers and body don't differ, and a refusal
	// that this instance remembers is not used, because a faster answer would tell.
	Signal
)

var modeNames = [...]string{Enforce: "enforce", Report: "report", Signal: "signal"}

// String returns "enforce", "report" or "signal".
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// MarshalText is String for the three modes and an error that wraps
// [stores.ErrInvalid] for others.
func (m Mode) MarshalText() ([]byte, error) {
	if int(m) < len(modeNames) {
		return []byte(modeNames[m]), nil
	}
	return nil, fmt.Errorf("%w mode %d", stores.ErrInvalid, uint8(m))
}

// UnmarshalText reads what String writes. The error wraps [stores.ErrInvalid].
func (m *Mode) UnmarshalText(text []byte) error {
	for i, name := range modeNames {
		if string(text) == name {
			*m = Mode(i)
			return nil
		}
	}
	return fmt.Errorf("%w mode %s: want \"enforce\", \"report\" or \"signal\"", stores.ErrInvalid, quoted(string(text)))
}
