package meter

// Two windows of one length, the first of which opened at the key's first hit. The
// older one counts by the part of it that lies within the last window's length from
// now: used = N + P * (End - now) / Window.

// roll brings a state to now.
func (r *Rule) roll(s *State, now int64) {
	switch {
	case now < s.End:
	case s.N > 0 && now < s.End+r.Window:
		s.P, s.N, s.End = s.N, 0, s.End+r.Window
	default:
		s.P, s.N, s.End = 0, 0, 0
	}
}

// left is what remains of the newer window; another clock may have set its end.
func (r *Rule) left(s State, now int64) int64 { return min(max(0, s.End-now), r.Window) }

func (r *Rule) slid(s State, now int64) int64 {
	r.roll(&s, now)
	return s.N + r.older(s, r.left(s, now))
}

// slide adds a hit, and returns how long to wait if there is no room.
//
// Room comes while the older window slides out, if the newer one alone leaves it: when
// P * left' <= room * Window. Else it comes in the next window, of which the newer one
// is then the older: when N * left' <= (Quota - cost) * Window.
func (r *Rule) slide(s *State, cost, now int64) (wait int64) {
	r.roll(s, now)
	if s.End == 0 {
		s.End = now + r.Window
	}
	left, room := r.left(*s, now), r.Quota-cost-s.N
	if room >= 0 && r.fits(*s, left, room) {
		s.N += cost
		return 0
	}
	if cost > r.Quota {
		return 0
	}
	if room >= 0 {
		return left - r.Window + r.shrinks(s.P, room)
	}
	return left + r.shrinks(s.N, r.Quota-cost)
}

func (r *Rule) slidingReset(s State, now int64) int64 {
	switch {
	case s.N > 0:
		return r.left(s, now) + r.Window
	case s.P > 0:
		return r.left(s, now)
	}
	return 0
}

// unslide takes from the newer window first: what is refunded has mostly just come.
func (r *Rule) unslide(s *State, cost, now int64) {
	r.roll(s, now)
	n := min(s.N, r.Quota)
	taken := min(n, cost)
	s.N = n - taken
	if rest := cost - taken; rest > 0 {
		s.P = max(0, min(s.P, r.Quota)-rest)
	}
}

func (r *Rule) paySliding(s *State, owed, until, now int64) {
	r.roll(s, now)
	if s.End == 0 {
		s.N, s.End = owed, now+until
		return
	}
	s.N += min(owed, max(0, r.Quota-r.slid(*s, now)))
}
