package stores

import "fmt"

// maxKey is the longest key that a Hit may have, in bytes.
const maxKey = 512

// Hit is one event to be counted.
type Hit struct {
	// Key names whose events are counted together: 1 to 512 bytes of printable
	// ASCII (0x20 to 0x7e). One key belongs to one algorithm and window; of its
	// limit only Quota may change between hits. [Keyer] makes such keys of anything.
	Key string

	Limit Limit

	// Cost is how much of the quota the hit takes; 0 means 1. A cost above the quota
	// is refused without asking anybody, with a RetryAfter of 0: it can never pass.
	Cost int

	// Outage is heeded by package failover only.
	Outage Outage
}

// Validate reports whether h lies within the bounds that its fields name. Every
// store calls it before anything else. The error wraps [ErrInvalid] and does not
// repeat the key. It does not allocate when h is valid.
func (h Hit) Validate() error {
	if len(h.Key) == 0 || len(h.Key) > maxKey {
		return fmt.Errorf("%w hit: a key of %d bytes: want 1 to %d", ErrInvalid, len(h.Key), maxKey)
	}
	for i := 0; i < len(h.Key); i++ {
		if c := h.Key[i]; c < 0x20 || c > 0x7e {
			return fmt.Errorf("%w hit: byte %d of the key is not printable ASCII", ErrInvalid, i)
		}
	}
	if h.Cost < 0 {
		return fmt.Errorf("%w hit: a cost of %d: want 0 (which means 1) or more", ErrInvalid, h.Cost)
	}
	if int(h.Outage) >= len(outageNames) {
		return fmt.Errorf("%w hit: unknown outage manner %d", ErrInvalid, uint8(h.Outage))
	}
	return h.Limit.Validate()
}
