package failover

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/sallyport/sallyport/stores/memory"
)

// State is the state of the breaker. The zero value is Closed.
type State uint8

// The states.
const (
	Closed   State = iota // the shared store is asked
	Open                  // it is not asked until its time is over
	HalfOpen              // one request at a time asks whether it is back
)

var stateNames = [...]string{Closed: "closed", Open: "open", HalfOpen: "half-open"}

// String returns "closed", "open" or "half-open".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Change is a change of the breaker's state.
type Change struct {
	From, To State
	Cause    error         // the failure that opened it; nil when it closes
	For      time.Duration // To is Open: for how long
	Since    time.Time     // when it left Closed
	Local    uint64        // decisions taken without the shared store since then
}

// Stats are counters since the start, and the state now. They are cheap to ask for.
type Stats struct {
	State      State
	Shared     uint64       // decisions of the shared store
	Local      uint64       // decisions of this process's memory
	Remembered uint64       // decisions by an earlier refusal of the shared store
	None       uint64       // hits that nobody counted: OutageAllow, OutageRefuse
	Probes     uint64       // calls that asked whether the shared store is back
	Debts      int          // keys of which the shared store has still to be told what was let through without it
	Memory     memory.Stats // of the fallback
}

// Stats returns the counters.
func (s *Store) Stats() Stats {
	if s == nil || s.shared == nil {
		return Stats{}
	}
	return Stats{
		State:      s.breaker.now(),
		Shared:     s.counts.shared.Load(),
		Local:      s.counts.local.Load(),
		Remembered: s.counts.remembered.Load(),
		None:       s.counts.none.Load(),
		Probes:     s.counts.probes.Load(),
		Debts:      int(s.fallback.debts.Load()),
		Memory:     s.fallback.stats(),
	}
}

// announce tells the logger and OnChange of a change. A nil change is none.
func (s *Store) announce(c *Change) {
	if c == nil {
		return
	}
	switch {
	case c.From == Closed:
		s.cfg.Logger.Warn("sallyport: the shared store fails, this instance counts in memory",
			slog.Any("cause", c.Cause), slog.Duration("for", c.For))
	case c.To == Closed:
		s.cfg.Logger.Info("sallyport: the shared store is back",
			slog.Duration("after", time.Since(c.Since)), slog.Uint64("decided_locally", c.Local))
	}
	if s.cfg.OnChange != nil {
		s.cfg.OnChange(*c)
	}
}
