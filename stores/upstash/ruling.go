package upstash

import (
	"time"
)

// ruling is what the script answered to one hit on a plain counter, with all that a
// decision about it depends on.
type ruling struct {
	args
	reply      [3]int64 // allowed, level, ms until the window's end
	sent, came int64    // when, by the store's clock
	seen       window   // what was known before it was sent
}

// sound tells whether the answer is one that the script can give.
func (r ruling) sound() bool {
	allowed, level, left := r.reply[0], r.reply[1], r.reply[2]
	if level < 0 || level > r.quota || left < 0 {
		return false
	}
	if allowed == 1 {
		return level >= r.cost
	}
	return allowed == 0 && r.cost > r.quota-level
}

// decide words a decision. The script's steps are one, so the end that it told is that
// of the window in which it ruled: nothing straddles here. The rest is as with a
// pipeline: the end is never taken for earlier than it is, what is told to callers is
// capped by the length with which the window opened, and a window that may be over by
// now is not remembered.
func (r ruling) decide() (o outcome) {
	const ms = int64(time.Millisecond)
	level, ttl := r.reply[1], min(r.reply[2], r.length)
	left, most := (ttl+1)*ms, r.length*ms
	if r.owed > 0 && ttl == r.until {
		most = ttl * ms // the payment opened it just now
	}
	o.Allowed = r.reply[0] == 1
	o.Remaining = int(r.quota - level)
	o.ResetAfter = time.Duration(min(left, most))
	if !o.Allowed && r.cost <= r.quota {
		o.RetryAfter = o.ResetAfter
	}
	if ttl > 0 {
		o.certain = true
		o.next = window{n: level, end: r.came + left, early: r.sent + ttl*ms}
		o.backward = r.follow(&o)
	}
	return o
}

// follow compares the window of the answer with the one that was known. That one's
// count may have been lowered by a refund elsewhere. But if another one opened while it
// was still to last, the key was reset elsewhere, or forgotten, which is told by true.
func (r ruling) follow(o *outcome) (backward bool) {
	if r.seen.end == 0 {
		return false
	}
	if o.next.early > r.seen.end {
		before := o.next.n
		if o.Allowed {
			before -= r.cost
		}
		return r.came < r.seen.early && before < min(r.seen.n, r.quota)
	}
	if !o.Allowed {
		// The counter is at the level or, above the quota, anywhere.
		o.next.n = max(o.next.n, r.seen.n)
	}
	return false
}

// learn keeps what an answer taught, and reports what it tells of the database.
func (s *Store) learn(key string, seen window, o outcome, now int64) {
	unchanged := s.windows.follow(key, seen, o.next, now)
	if o.backward && unchanged {
		s.reports.fell(now)
	}
}
