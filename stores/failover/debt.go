package failover

import "time"

// debt is what goes along with a hit to be taken out of the quota first.
type debt struct {
	owed   int64
	until  time.Duration
	level  owedLevel     // of a limit that is counted by levels: what owed was read from
	ours   bool          // not all of it was brought by the hit
	opened int64         // of the record in which it was made: its window, or its resets
	done   chan struct{} // closed when the payment has ended, whatever became of it
}

// brought is a debt of somebody else's that comes with a hit, and ends after until. It is
// added to what the key owes when the hit is decided, not before: another hit of the
// key must not pay it.
type brought struct{ owed, until int64 }

func (f *fallback) setOwed(r *record, owed int64) {
	if r.owed > 0 {
		f.debts.Add(-1)
	}
	if r.owed = owed; owed > 0 {
		f.debts.Add(1)
	}
}
