package stores

import "fmt"

// Outage says what becomes of a hit that the shared store can't decide, because it
// failed or is left alone after failures. Package failover heeds it; the stores
// themselves ignore it. The zero value is OutageFallBack.
//
// What a client could bring about (one key too hot, too many calls at once, no time
// left) is no outage for OutageAllow: then memory decides, or a limit could be got
// round by pushing harder.
type Outage uint8

// The manners of an outage.
const (
	OutageFallBack Outage = iota // this instance's memory decides
	OutageAllow                  // allowed, and counted by nobody
	OutageRefuse                 // refused, and counted by nobody
)

var outageNames = [...]string{OutageFallBack: "fallback", OutageAllow: "allow", OutageRefuse: "refuse"}

// String returns "fallback", "allow" or "refuse".
func (o Outage) String() string {
	if int(o) < len(outageNames) {
		return outageNames[o]
	}
	return fmt.Sprintf("Outage(%d)", uint8(o))
}

// MarshalText is String for the three values and an error that wraps [ErrInvalid]
// for others.
func (o Outage) MarshalText() ([]byte, error) {
	if int(o) < len(outageNames) {
		return []byte(outageNames[o]), nil
	}
	return nil, fmt.Errorf("%w outage manner %d", ErrInvalid, uint8(o))
}

// UnmarshalText reads what String writes. The error wraps [ErrInvalid].
func (o *Outage) UnmarshalText(text []byte) error {
	for i, name := range outageNames {
		if string(text) == name {
			*o = Outage(i)
			return nil
		}
	}
	return fmt.Errorf("%w outage manner %s: want \"fallback\", \"allow\" or \"refuse\"", ErrInvalid, quote(string(text)))
}
