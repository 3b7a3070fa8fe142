package meter

import "github.com/sallyport/sallyport/stores"

// A bucket as the generic cell rate algorithm counts it (ITU-T I.371, virtual
// scheduling): one time, the theoretical arrival time, at which the bucket is whole
// again. A token bucket and a leaky one differ in one thing: an event that the leaky
// one admits departs when the one before it has drained.

func (r *Rule) poured(s State, now int64) int64 {
	return (max(0, s.End-now) + r.Emission - 1) / r.Emission
}

// pour adds a hit. It returns how long to wait if there is no room, else, for a leaky
// bucket, how long the event should wait for its departure.
func (r *Rule) pour(s *State, cost, now int64) (wait, delay int64) {
	if cost > r.Quota {
		return 0, 0
	}
	tat := max(s.End, now)
	next := tat + cost*r.Emission
	if next > now+r.Burst {
		return next - r.Burst - now, 0
	}
	s.End = next
	if r.Algorithm == stores.Leaky {
		delay = tat - now
	}
	return 0, delay
}

// unpour of a leaky bucket gives the last departure back, whichever event had it.
func (r *Rule) unpour(s *State, cost, now int64) {
	if s.End > now {
		s.End = max(now, min(s.End, now+r.Burst)-cost*r.Emission)
	}
}

func (r *Rule) payBucket(s *State, owed, now int64) {
	s.End = max(s.End, min(now+r.Burst, max(s.End, now)+owed*r.Emission))
}
