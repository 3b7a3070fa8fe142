package upstash

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// TestRuling goes through the answers that the script can give: quota 5, window 1000 ms,
// sent at 100 ms, answered at 110 ms.
func TestRuling(t *testing.T) {
	const (
		ms = time.Millisecond
		in = int64(time.Millisecond)
	)
	known := window{n: 3, end: 700 * in, early: 680 * in}
	plain := func(cost int64) args { return args{quota: 5, cost: cost, length: 1000} }
	owing := func(cost, owed, until int64) args {
		return args{quota: 5, cost: cost, length: 1000, owed: owed, until: until}
	}
	allowed := func(rest int, reset time.Duration) stores.Decision {
		return stores.Decision{Allowed: true, Remaining: rest, ResetAfter: reset}
	}
	refused := func(rest int, retry, reset time.Duration) stores.Decision {
		return stores.Decision{Remaining: rest, RetryAfter: retry, ResetAfter: reset}
	}
	cases := []struct {
		name     string
		args     args
		reply    [3]int64
		seen     window
		want     stores.Decision
		certain  bool
		next     window
		backward bool
	}{
		{"opens", plain(3), [3]int64{1, 3, 1000}, window{}, allowed(2, 1000*ms), true, window{3, 1111 * in, 1100 * in}, false},
		{"all at once", plain(5), [3]int64{1, 5, 1000}, window{}, allowed(0, 1000*ms), true, window{5, 1111 * in, 1100 * in}, false},
		{"cold", plain(2), [3]int64{1, 4, 500}, window{}, allowed(1, 501*ms), true, window{4, 611 * in, 600 * in}, false},
		{"warm", plain(2), [3]int64{1, 5, 590}, known, allowed(0, 591*ms), true, window{5, 701 * in, 690 * in}, false},
		{"refused", plain(3), [3]int64{0, 4, 500}, window{}, refused(1, 501*ms, 501*ms), true, window{4, 611 * in, 600 * in}, false},
		{"refused in a window that opened just now", plain(3), [3]int64{0, 4, 1000}, window{}, refused(1, 1000*ms, 1000*ms), true, window{4, 1111 * in, 1100 * in}, false},
		{"refused, the counter known to be higher", plain(3), [3]int64{0, 5, 580}, window{9, 700 * in, 680 * in}, refused(0, 581*ms, 581*ms), true, window{9, 691 * in, 680 * in}, false},
		{"over by now", plain(3), [3]int64{0, 4, 0}, window{}, refused(1, 1*ms, 1*ms), false, window{}, false},
		{"over by now, allowed", plain(1), [3]int64{1, 4, 0}, known, allowed(1, 1*ms), false, window{}, false},
		{"an expiry of somebody else's", plain(3), [3]int64{0, 4, 90000}, window{}, refused(1, 1000*ms, 1000*ms), true, window{4, 1111 * in, 1100 * in}, false},

		{"a payment opens", owing(1, 2, 400), [3]int64{1, 3, 400}, window{}, allowed(2, 400*ms), true, window{3, 511 * in, 500 * in}, false},
		{"a payment opens, refused", owing(5, 2, 400), [3]int64{0, 2, 400}, window{}, refused(3, 400*ms, 400*ms), true, window{2, 511 * in, 500 * in}, false},
		{"a payment in a window", owing(1, 2, 400), [3]int64{1, 5, 399}, window{}, allowed(0, 400*ms), true, window{5, 510 * in, 499 * in}, false},
		{"a payment for a hit that never passes", owing(6, 2, 400), [3]int64{0, 5, 300}, window{}, refused(0, 0, 301*ms), true, window{5, 411 * in, 400 * in}, false},

		{"reset elsewhere", plain(2), [3]int64{1, 2, 1000}, known, allowed(3, 1000*ms), true, window{2, 1111 * in, 1100 * in}, true},
		{"reset elsewhere, and filled again", plain(2), [3]int64{1, 5, 1000}, known, allowed(0, 1000*ms), true, window{5, 1111 * in, 1100 * in}, false},
		{"refund elsewhere", plain(2), [3]int64{1, 3, 590}, known, allowed(2, 591*ms), true, window{3, 701 * in, 690 * in}, false},
		{"reset elsewhere, refused", plain(4), [3]int64{0, 2, 990}, known, refused(3, 991*ms, 991*ms), true, window{2, 1101 * in, 1090 * in}, true},
		{"the next window", plain(2), [3]int64{1, 2, 1000}, window{4, 112 * in, 108 * in}, allowed(3, 1000*ms), true, window{2, 1111 * in, 1100 * in}, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := ruling{args: tc.args, reply: tc.reply, sent: 100 * in, came: 110 * in, seen: tc.seen}
			require.True(t, r.sound())
			o := r.decide()
			require.Equal(t, tc.want, o.Decision)
			require.Equal(t, tc.certain, o.certain)
			require.Equal(t, tc.next, o.next)
			require.Equal(t, tc.backward, o.backward)
		})
	}
}

func TestUnsoundRulings(t *testing.T) {
	for _, reply := range [][3]int64{
		{2, 3, 500}, {-1, 3, 500}, // neither yes nor no
		{1, -1, 500}, {0, -1, 500}, {1, 6, 500}, {0, 6, 500}, {1, math.MaxInt64, 500}, // no level
		{1, 3, -1}, {1, 3, -2}, {0, 4, -2}, {0, 4, math.MinInt64}, // no window
		{1, 1, 500}, {1, 0, 500}, // allowed, and not taken
		{0, 3, 500}, {0, 0, 500}, // refused, with room for it
	} {
		require.False(t, ruling{args: args{quota: 5, cost: 2, length: 1000}, reply: reply}.sound(), reply)
	}
	require.True(t, ruling{args: args{quota: 1<<53 - 1, cost: 1 << 53, length: 1000}, reply: [3]int64{0, 0, 5}}.sound())
}

// FuzzRuling: whatever a server says to the script, it is either an error that leaves
// open whether the hit was counted, or a decision that can be true.
func FuzzRuling(f *testing.F) {
	f.Add([]byte(`[{"result":[1,3,60000,0,0]}]`), int64(5), int64(3), int64(60000), int64(0), int64(0), int64(0), int64(0))
	f.Add([]byte(`[{"result":[0,4,0,0,0]}]`), int64(5), int64(3), int64(1), int64(2), int64(1), int64(4), int64(1000))
	for _, s := range []string{
		`[1,3]`, `[1,3,4,5]`, `[]`, `["1","3","4"]`, `[1,3,"4"]`, `[1.0,3,4]`, `[1e0,3,4]`, `[null,3,4]`, `[true,3,4]`, `[[1,3,4]]`,
		`[1,-3,4]`, `[-1,3,4]`, `[1,3,-2]`, `[1,9223372036854775808,4]`, `[ 1 , 3 , 4 ]`, `{"1":1}`, `"1,3,4"`, `null`, `1`,
	} {
		f.Add([]byte(`[{"result":`+s+`}]`), int64(5), int64(3), int64(1000), int64(0), int64(0), int64(0), int64(0))
	}
	f.Fuzz(func(t *testing.T, body []byte, quota, cost, length, owed, until, seenN, seenEnd int64) {
		const sent = int64(100 * time.Millisecond)
		const most = 10 * 365 * 24 * 3600 * 1000
		a := args{way: counter, unit: time.Millisecond, quota: max(1, min(quota, 1<<53-1)), length: max(1, min(length, most))}
		a.cost, a.owed, a.until = max(1, min(cost, a.quota+1)), max(0, min(owed, a.quota)), max(1, min(until, a.length))
		seen := window{n: max(1, seenN), end: min(seenEnd, most*int64(time.Millisecond)), early: min(seenEnd, most*int64(time.Millisecond))}
		if seen.end <= sent {
			seen = window{}
		}
		var slots [1]slot
		if err := parse(body, slots[:]); err != nil || slots[0].kind != isList || slots[0].text != "" || len(slots[0].list) != rowLength || !a.sound(take, slots[0].list) {
			return
		}
		require.Regexp(t, `\[(\s*-?\d+\s*,){4}\s*-?\d+\s*\]`, string(body))
		r := ruling{args: a, reply: [3]int64(slots[0].list), sent: sent, came: sent + int64(time.Millisecond), seen: seen}
		require.True(t, r.sound())
		o := r.decide()
		whole := time.Duration(a.length) * time.Millisecond
		require.Equal(t, r.reply[0] == 1, o.Allowed)
		require.EqualValues(t, a.quota-r.reply[1], o.Remaining)
		require.GreaterOrEqual(t, o.Remaining, 0)
		require.Positive(t, o.ResetAfter)
		require.LessOrEqual(t, o.ResetAfter, whole)
		switch {
		case o.Allowed:
			require.LessOrEqual(t, int64(o.Remaining), a.quota-a.cost)
			require.Zero(t, o.RetryAfter)
		case a.cost > a.quota:
			require.Zero(t, o.RetryAfter)
		default:
			require.Less(t, int64(o.Remaining), a.cost)
			require.Equal(t, o.ResetAfter, o.RetryAfter)
		}
		require.Equal(t, o.next.end != 0, o.certain)
		if o.certain {
			require.GreaterOrEqual(t, o.next.end, r.came+int64(o.ResetAfter), "never earlier than it is")
		}
	})
}

// TestScriptBodies: every argument is a JSON string, and no key can be more than that.
func TestScriptBodies(t *testing.T) {
	hits := []asked{
		{args: args{way: counter, quota: 1<<53 - 1, cost: 1 << 53, length: 60000, owed: 7, until: 1}},
		{args: args{way: "leaky", quota: 5, cost: 1, length: 60000, block: 3, emission: 12000, open: true}, key: "other"},
	}
	want := []string{"2", "", "other", "take",
		"counter", "9007199254740991", "9007199254740992", "60000", "0", "0", "7", "1", "0",
		"leaky", "5", "1", "60000", "3", "12000", "0", "0", "1"}
	for _, key := range []string{"plain", `a"b\c`, ` !#$%&'()*+,-./:;<=>?@[]^_{|}~`, `","1","x"],["FLUSHALL`, `\u0000`} {
		want[1], hits[0].key = key, key
		for _, f := range []form{onUpstash, elsewhere} {
			require.Equal(t, [][]string{append([]string{"EVALSHA", f.sha}, want...)}, commands(t, evalshaBody(f.sha, take, hits)))
			require.Equal(t, [][]string{append([]string{"EVAL", f.text()}, want...)}, commands(t, evalBody(f.text(), take, hits)))
		}
	}
	require.Equal(t, "#!lua flags=allow-key-locking\n-- One step", fmt.Sprintf("%.41s", onUpstash.text()))
	require.Equal(t, "-- One step", fmt.Sprintf("%.11s", elsewhere.text()))
}
