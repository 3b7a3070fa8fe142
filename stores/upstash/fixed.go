package upstash

import (
	"context"
	"strings"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// unknown stands for a number that was not asked for or not answered.
const unknown = -9

// answer is what the server said about one hit.
type answer struct {
	n      int64 // INCR: the count with this hit
	opened int64 // PEXPIRE NX: 1 if it set the expiry, 0 if there was one, or unknown
	ttl    int64 // PTTL in ms: -1 without expiry, -2 without key, or unknown
}

// exact is one exchange for one hit, with all that a decision about it depends on.
type exact struct {
	answer
	quota      int
	length     int64  // of the window, in ms
	sent, came int64  // when, by the store's clock
	seen       window // what was known before it was sent
}

// outcome is the decision about a hit and what it teaches.
type outcome struct {
	stores.Decision
	certain  bool   // the end of its window is known
	next     window // what is known from now on; zero: nothing
	backward bool   // a window ended before its time: a Reset elsewhere, or the store forgot
}

// decide judges one hit. INCR's count alone says whether it is allowed; the rest is
// about the window's end, and has to allow for the commands of a pipeline being single
// ones: the window may end, and another hit may open the next, between any two.
//
//   - PEXPIRE set the expiry on a count of 1: this hit opened the window.
//   - PEXPIRE set it on a higher count: the key had lost its expiry, or the window
//     ended after INCR and PEXPIRE met the next one. A refusal is then *straddling*:
//     it may belong to a window that is over, so trying again at once is right.
//   - PTTL was not asked, because the end is known and lies ahead. If the count grew,
//     it is the window that is known. If not, it is another one, or somebody refunded a
//     hit of this one: the next hit asks.
//   - PTTL gives the time left. If that says that the window opened during this very
//     exchange, INCR may still have counted in the one before: straddling again.
//   - PTTL of -2, or of 0: the window is over. Straddling.
//   - PTTL of -1: PEXPIRE failed, and the next hit's will heal it.
//
// The end is never taken for earlier than it is: it is reckoned from the arrival of
// the answer, and a millisecond is added, because Redis counts in whole ones and a key
// lives through the one in which its time is up. What is told to callers is capped by
// the window's length; that cuts off less than that millisecond, and only in the first
// one of a window. Where the end is unsure, the whole length is the bound.
func (x exact) decide() (o outcome) {
	const ms = int64(time.Millisecond)
	length := x.length * ms
	left, straddling := length, false
	known := x.seen.end != 0
	switch {
	case x.opened == 1 && x.n == 1:
		o.next = window{n: 1, end: x.came + length + ms, early: x.sent + length}
	case x.opened == 1:
		straddling = true
	case x.ttl == unknown && known && x.n > x.seen.n:
		left = x.seen.end - x.came
		o.next = x.seen
		o.next.n = x.n
		if left <= 0 {
			left, straddling = 0, true
		}
	case x.ttl > 0:
		ttl := min(x.ttl, x.length) * ms
		left = ttl + ms
		o.next = window{n: x.n, end: x.came + left, early: x.sent + ttl}
		if ttl > length-(x.came-x.sent)-ms {
			o.next.n, straddling = 0, true
		}
	case x.ttl == 0 || x.ttl == -2:
		left, straddling = 0, true
	}
	o.backward = known && x.n <= x.seen.n && x.came < x.seen.early && (x.opened == 1 || o.next.early > x.seen.end)
	left = max(ms, min(left, length))
	o.Allowed = x.n <= int64(x.quota)
	o.ResetAfter = time.Duration(left)
	if o.Allowed {
		o.Remaining = x.quota - int(x.n)
		o.certain = o.next.end != 0
		return o
	}
	o.RetryAfter = time.Duration(left)
	if straddling {
		o.RetryAfter, o.next = time.Millisecond, window{}
	}
	o.certain = o.next.end != 0
	return o
}

// takeOne counts a hit of cost 1 in a fixed window by the pipeline.
func (s *Store) takeOne(ctx context.Context, key string, a args) (stores.Decision, bool, error) {
	sent := s.clock.Now()
	x := exact{quota: int(a.quota), length: a.length, sent: sent, seen: s.windows.find(key, sent)}
	count := s.count
	if s.plain.Load() {
		count = s.countPlainly
	}
	var err error
	if x.answer, err = count(ctx, key, a.length, x.seen.end != 0); err != nil {
		return stores.Decision{}, false, err
	}
	x.came = s.clock.Now()
	o := x.decide()
	s.learn(key, x.seen, o, x.came)
	return o.Decision, o.certain, nil
}

// count sends the pipeline of INCR and PEXPIRE ... NX, and PTTL unless the end is
// known.
//
// Once INCR is answered the hit is counted, and counting it anywhere else would count
// it twice. So from there on nothing is an error: without an answer to the other two,
// less is known of the window.
func (s *Store) count(ctx context.Context, key string, ms int64, endKnown bool) (answer, error) {
	var slots [3]slot
	got := slots[:3]
	if endKnown {
		got = slots[:2]
	}
	if err := s.exchange(ctx, countBody(key, ms, !endKnown), got); err != nil {
		return answer{}, err
	}
	n, err := slots[0].counter(1, "INCR")
	if err != nil {
		return answer{}, err
	}
	a := answer{n: n, opened: unknown, ttl: unknown}
	if !endKnown {
		a.ttl = slots[2].ttl()
	}
	switch nx := slots[1]; {
	case nx.kind == isInt && (nx.n == 0 || nx.n == 1):
		a.opened = nx.n
		s.reports.expirySet()
	case nx.kind == isError && refusesNX(nx.text):
		if s.plain.CompareAndSwap(false, true) {
			s.reports.plain()
		}
		if n == 1 || a.ttl == -1 {
			s.expirePlainly(ctx, key, ms, &a)
		}
	default:
		s.reports.expiryFailed(nx, s.clock.Now())
	}
	return a, nil
}

// countPlainly is count for servers without PEXPIRE ... NX, such as Redis before 7:
// the hit that opened the window sets its expiry in a second exchange, and so does
// whoever meets a key without one.
func (s *Store) countPlainly(ctx context.Context, key string, ms int64, _ bool) (answer, error) {
	var slots [2]slot
	if err := s.exchange(ctx, plainCountBody(key), slots[:]); err != nil {
		return answer{}, err
	}
	n, err := slots[0].counter(1, "INCR")
	if err != nil {
		return answer{}, err
	}
	a := answer{n: n, opened: 0, ttl: slots[1].ttl()}
	if n == 1 || a.ttl == -1 {
		s.expirePlainly(ctx, key, ms, &a)
	}
	return a, nil
}

// expirePlainly sets an expiry whatever is there.
func (s *Store) expirePlainly(ctx context.Context, key string, ms int64, a *answer) {
	var slots [1]slot
	err := s.exchange(ctx, plainExpireBody(key, ms), slots[:])
	if err != nil || slots[0].kind != isInt {
		s.reports.expiryFailed(slots[0], s.clock.Now())
		return
	}
	a.opened = slots[0].n
	s.reports.expirySet()
}

// ttl reads PTTL's slot.
func (s slot) ttl() int64 {
	if s.kind != isInt || s.n < -2 {
		return unknown
	}
	return s.n
}

// refusesNX tells whether a server that failed at PEXPIRE did not understand it.
func refusesNX(text string) bool {
	upper := strings.ToUpper(text)
	return strings.Contains(upper, "SYNTAX ERROR") || strings.Contains(upper, "WRONG NUMBER OF ARGUMENTS") ||
		strings.Contains(upper, "UNSUPPORTED OPTION")
}
