package upstash

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// TestDecide goes through every answer that a pipeline can have: quota 5, window
// 1000 ms, sent at 100 ms, answered at 110 ms, so that a window with 989 ms left or
// more may have opened meanwhile.
func TestDecide(t *testing.T) {
	const (
		ms  = time.Millisecond
		in  = int64(time.Millisecond)
		yes = true
	)
	known := func(n int64) window { return window{n: n, end: 700 * in, early: 680 * in} }
	allowed := func(rest int, reset time.Duration) stores.Decision {
		return stores.Decision{Allowed: true, Remaining: rest, ResetAfter: reset}
	}
	refused := func(retry, reset time.Duration) stores.Decision {
		return stores.Decision{RetryAfter: retry, ResetAfter: reset}
	}
	cases := []struct {
		name     string
		answer   answer
		seen     window
		want     stores.Decision
		certain  bool
		next     window
		backward bool
	}{
		// The hit that opens the window.
		{"first", answer{1, 1, 1000}, window{}, allowed(4, 1000*ms), yes, window{1, 1111 * in, 1100 * in}, false},
		{"first, PTTL a bit later", answer{1, 1, 999}, window{}, allowed(4, 1000*ms), yes, window{1, 1111 * in, 1100 * in}, false},
		{"first, PTTL failed", answer{1, 1, unknown}, window{}, allowed(4, 1000*ms), yes, window{1, 1111 * in, 1100 * in}, false},

		// A window of others: PTTL tells.
		{"cold", answer{3, 0, 500}, window{}, allowed(2, 501*ms), yes, window{3, 611 * in, 600 * in}, false},
		{"cold, last", answer{5, 0, 500}, window{}, allowed(0, 501*ms), yes, window{5, 611 * in, 600 * in}, false},
		{"cold, refused", answer{6, 0, 500}, window{}, refused(501*ms, 501*ms), yes, window{6, 611 * in, 600 * in}, false},
		{"cold, refused, as late as is sure", answer{6, 0, 989}, window{}, refused(990*ms, 990*ms), yes, window{6, 1100 * in, 1089 * in}, false},
		{"cold, refused, 1 ms left", answer{6, 0, 1}, window{}, refused(2*ms, 2*ms), yes, window{6, 112 * in, 101 * in}, false},
		{"cold, refused, far over", answer{math.MaxInt64, 0, 500}, window{}, refused(501*ms, 501*ms), yes, window{math.MaxInt64, 611 * in, 600 * in}, false},

		// Straddling refusals: the count may be of a window that is over.
		{"refused, opened meanwhile", answer{6, 0, 990}, window{}, refused(1*ms, 991*ms), false, window{}, false},
		{"refused, opened just now", answer{6, 0, 1000}, window{}, refused(1*ms, 1000*ms), false, window{}, false},
		{"refused, PTTL above the window", answer{6, 0, 5000}, window{}, refused(1*ms, 1000*ms), false, window{}, false},
		{"refused, PTTL absurd", answer{6, 0, math.MaxInt64}, window{}, refused(1*ms, 1000*ms), false, window{}, false},
		{"refused, PEXPIRE set", answer{6, 1, 1000}, window{}, refused(1*ms, 1000*ms), false, window{}, false},
		{"refused, PEXPIRE set, known end", answer{6, 1, unknown}, known(5), refused(1*ms, 1000*ms), false, window{}, false},
		{"refused, key gone", answer{6, 0, -2}, window{}, refused(1*ms, 1*ms), false, window{}, false},
		{"refused, 0 ms left", answer{6, 0, 0}, window{}, refused(1*ms, 1*ms), false, window{}, false},

		// An allowed hit may straddle as well. Then its count is no mark of the window.
		{"allowed, opened meanwhile", answer{3, 0, 995}, window{}, allowed(2, 996*ms), yes, window{0, 1106 * in, 1095 * in}, false},
		{"allowed, PEXPIRE set", answer{3, 1, 1000}, window{}, allowed(2, 1000*ms), false, window{}, false},
		{"allowed, key gone", answer{5, 0, -2}, window{}, allowed(0, 1*ms), false, window{}, false},
		{"allowed, 0 ms left", answer{5, 0, 0}, window{}, allowed(0, 1*ms), false, window{}, false},

		// No expiry: the window is the bound, and nothing is remembered.
		{"no expiry", answer{3, unknown, -1}, window{}, allowed(2, 1000*ms), false, window{}, false},
		{"no expiry, refused", answer{6, unknown, -1}, window{}, refused(1000*ms, 1000*ms), false, window{}, false},
		{"no expiry, refused, nothing failed", answer{6, 0, -1}, window{}, refused(1000*ms, 1000*ms), false, window{}, false},
		{"nothing but the count", answer{6, unknown, unknown}, window{}, refused(1000*ms, 1000*ms), false, window{}, false},
		{"PEXPIRE failed, expiry of old", answer{6, unknown, 500}, window{}, refused(501*ms, 501*ms), yes, window{6, 611 * in, 600 * in}, false},

		// The end is known, PTTL was not asked.
		{"warm", answer{4, 0, unknown}, known(3), allowed(1, 590*ms), yes, window{4, 700 * in, 680 * in}, false},
		{"warm, refused", answer{6, 0, unknown}, known(3), refused(590*ms, 590*ms), yes, window{6, 700 * in, 680 * in}, false},
		{"warm, PEXPIRE failed", answer{6, unknown, unknown}, known(5), refused(590*ms, 590*ms), yes, window{6, 700 * in, 680 * in}, false},
		{"warm, over when answered", answer{6, 0, unknown}, window{5, 110 * in, 90 * in}, refused(1*ms, 1*ms), false, window{}, false},
		{"warm, over when answered, allowed", answer{4, 0, unknown}, window{3, 105 * in, 90 * in}, allowed(1, 1*ms), yes, window{4, 105 * in, 90 * in}, false},

		// The count did not grow: another window, or a refund. Only a window that opened
		// while the known one was to last is news.
		{"reset elsewhere, first", answer{1, 1, unknown}, known(4), allowed(4, 1000*ms), yes, window{1, 1111 * in, 1100 * in}, true},
		{"reset or refund elsewhere, second", answer{2, 0, unknown}, known(4), allowed(3, 1000*ms), false, window{}, false},
		{"reset or refund elsewhere, same count", answer{4, 0, unknown}, known(4), allowed(1, 1000*ms), false, window{}, false},
		{"reset or refund elsewhere, refused", answer{6, 0, unknown}, known(9), refused(1000*ms, 1000*ms), false, window{}, false},
		{"next window, first", answer{1, 1, unknown}, window{4, 112 * in, 108 * in}, allowed(4, 1000*ms), yes, window{1, 1111 * in, 1100 * in}, false},
		{"next window, second", answer{2, 0, unknown}, window{4, 112 * in, 108 * in}, allowed(3, 1000*ms), false, window{}, false},

		// Servers without NX: PTTL is always asked.
		{"plain, warm", answer{4, 0, 400}, known(3), allowed(1, 401*ms), yes, window{4, 511 * in, 500 * in}, false},
		{"plain, reset elsewhere", answer{2, 0, 900}, known(3), allowed(3, 901*ms), yes, window{2, 1011 * in, 1000 * in}, true},
		{"plain, refund elsewhere", answer{2, 0, 400}, known(3), allowed(3, 401*ms), yes, window{2, 511 * in, 500 * in}, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			x := exact{answer: tc.answer, quota: 5, length: 1000, sent: 100 * in, came: 110 * in, seen: tc.seen}
			o := x.decide()
			require.Equal(t, tc.want, o.Decision)
			require.Equal(t, tc.certain, o.certain)
			require.Equal(t, tc.next, o.next)
			require.Equal(t, tc.backward, o.backward)
		})
	}
}

// FuzzDecide: whatever a server says, the count alone decides, and the times lie
// within the window.
func FuzzDecide(f *testing.F) {
	f.Add(int64(6), int64(0), int64(500), int64(3), int64(700), 5, int64(1000), int64(10))
	f.Add(int64(1), int64(1), int64(-2), int64(0), int64(0), 1, int64(1), int64(0))
	f.Fuzz(func(t *testing.T, n, opened, ttl, seenN, seenEnd int64, quota int, length, exchange int64) {
		quota, length = max(1, quota), max(1, min(length, 10*365*24*3600*1000))
		n, exchange = max(1, n), max(0, min(exchange, int64(time.Hour)))
		const sent = int64(100 * time.Millisecond)
		seen := window{n: seenN, end: seenEnd, early: seenEnd}
		if seenEnd <= sent {
			seen = window{} // find shows none that is over
		}
		seen.end = min(seen.end, sent+(length+1)*int64(time.Millisecond)) // nor one that is longer
		o := exact{answer: answer{n, opened, ttl}, quota: quota, length: length, sent: sent, came: sent + exchange, seen: seen}.decide()
		whole := time.Duration(length) * time.Millisecond
		require.Equal(t, n <= int64(quota), o.Allowed)
		require.GreaterOrEqual(t, o.Remaining, 0)
		require.LessOrEqual(t, o.Remaining, quota-1)
		require.GreaterOrEqual(t, o.ResetAfter, time.Millisecond)
		require.LessOrEqual(t, o.ResetAfter, whole)
		if o.Allowed {
			require.Zero(t, o.RetryAfter)
		} else {
			require.GreaterOrEqual(t, o.RetryAfter, time.Millisecond)
			require.LessOrEqual(t, o.RetryAfter, o.ResetAfter)
			require.Zero(t, o.Remaining)
		}
		require.Equal(t, o.next.end != 0, o.certain, "only an end that is known may be remembered")
	})
}

func TestPeeked(t *testing.T) {
	const ms = time.Millisecond
	cases := []struct {
		name       string
		count, ttl int64
		cost       int
		want       stores.Decision
	}{
		{"nothing", 0, -2, 1, stores.Decision{Allowed: true, Remaining: 5}},
		{"some", 3, 500, 1, stores.Decision{Allowed: true, Remaining: 2, ResetAfter: 501 * ms}},
		{"some, cost 2", 3, 500, 2, stores.Decision{Allowed: true, Remaining: 2, ResetAfter: 501 * ms}},
		{"some, cost 3", 3, 500, 3, stores.Decision{Remaining: 2, RetryAfter: 501 * ms, ResetAfter: 501 * ms}},
		{"some, a cost that never passes", 3, 500, 6, stores.Decision{Remaining: 2, ResetAfter: 501 * ms}},
		{"used up", 5, 500, 1, stores.Decision{RetryAfter: 501 * ms, ResetAfter: 501 * ms}},
		{"over", 1 << 60, 500, 1, stores.Decision{RetryAfter: 501 * ms, ResetAfter: 501 * ms}},
		{"gone between GET and PTTL", 5, -2, 1, stores.Decision{Allowed: true, Remaining: 5}},
		{"no expiry", 5, -1, 1, stores.Decision{RetryAfter: 1000 * ms, ResetAfter: 1000 * ms}},
		{"0 ms left", 5, 0, 1, stores.Decision{RetryAfter: 1 * ms, ResetAfter: 1 * ms}},
		{"as late as is sure", 5, 989, 1, stores.Decision{RetryAfter: 990 * ms, ResetAfter: 990 * ms}},
		{"opened meanwhile", 5, 990, 1, stores.Decision{RetryAfter: 1 * ms, ResetAfter: 991 * ms}},
		{"PTTL absurd", 5, math.MaxInt64, 1, stores.Decision{RetryAfter: 1 * ms, ResetAfter: 1000 * ms}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, peeked(tc.count, tc.ttl, tc.cost, 5, 1000, 10*ms))
		})
	}
}

func TestWindows(t *testing.T) {
	w := newWindows()
	require.Zero(t, w.find("k", 1))
	first := window{n: 1, end: 100, early: 90}
	require.True(t, w.follow("k", window{}, first, 10))
	require.Equal(t, first, w.find("k", 99))
	require.Zero(t, w.find("k", 100), "over is over")

	// Two answers overtake each other: the larger count stays.
	require.True(t, w.follow("k", first, window{n: 4, end: 100, early: 90}, 20))
	require.True(t, w.follow("k", first, window{n: 3, end: 100, early: 90}, 21))
	require.EqualValues(t, 4, w.find("k", 50).n)

	// An answer of a window that others have left behind changes nothing.
	next := window{n: 1, end: 200, early: 190}
	require.True(t, w.follow("k", first, next, 95))
	require.False(t, w.follow("k", first, window{n: 9, end: 100, early: 90}, 96))
	require.Equal(t, next, w.find("k", 97))
	require.False(t, w.follow("k", window{}, window{n: 7, end: 150, early: 140}, 97))
	require.Equal(t, next, w.find("k", 97))

	// What Reset forgot, an answer that was on its way does not bring back.
	w.forget("k")
	require.False(t, w.follow("k", next, window{n: 2, end: 200, early: 190}, 98))
	require.Zero(t, w.find("k", 98))

	// A window that is over is replaced by a hit that saw none.
	require.True(t, w.follow("k", window{}, first, 10))
	require.True(t, w.follow("k", window{}, next, 150))
	require.Equal(t, next, w.find("k", 150))

	// A zero window forgets, whatever changed.
	require.False(t, w.follow("k", first, window{}, 160))
	require.Zero(t, w.find("k", 160))
	require.Zero(t, w.table.Len())
}

// TestWindowsAreBounded floods the memory: it never holds more than its cap, and keys
// that were hit often outlast those that came once.
func TestWindowsAreBounded(t *testing.T) {
	w := newWindows()
	w.follow("busy", window{}, window{n: 100, end: math.MaxInt64}, 1)
	key := make([]byte, 4)
	for i := range 4 * maxWindows {
		key[0], key[1], key[2], key[3] = byte(i), byte(i>>8), byte(i>>16), 'x'
		w.follow(string(key), window{}, window{n: 1, end: math.MaxInt64}, int64(i+1))
		require.LessOrEqual(t, w.table.Len(), maxWindows)
	}
	require.Equal(t, maxWindows, w.table.Len())
	require.NotZero(t, w.find("busy", 1<<40))
}
