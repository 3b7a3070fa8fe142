package meter

// A fixed window opens at the first hit and ends a window later.

func (r *Rule) counted(s State, now int64) int64 {
	if now >= s.End {
		return 0
	}
	return s.N
}

// count adds a hit, and returns how long to wait if there is no room.
func (r *Rule) count(s *State, cost, now int64) (wait int64) {
	if now >= s.End {
		s.N, s.End = 0, now+r.Window
	}
	if s.N+cost > r.Quota {
		return min(s.End-now, r.Window)
	}
	s.N += cost
	return 0
}

func (r *Rule) uncount(s *State, cost, now int64) {
	if now < s.End {
		s.N = max(0, min(s.N, r.Quota)-cost)
	}
}

func (r *Rule) payFixed(s *State, owed, until, now int64) {
	if now >= s.End {
		s.N, s.End = owed, now+until
		return
	}
	s.N = max(s.N, min(r.Quota, s.N+owed))
}
