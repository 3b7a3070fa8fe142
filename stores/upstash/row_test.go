package upstash

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

func TestRows(t *testing.T) {
	hit := func(l stores.Limit, cost int) args { return argsOf(stores.Hit{Key: "k", Limit: l, Cost: cost}) }
	sliding, leaky := hit(stores.SlidingWindow(5, time.Minute), 2), hit(stores.LeakyBucket(5, time.Minute), 2)
	never := hit(stores.SlidingWindow(5, time.Minute), 9)
	cases := []struct {
		name string
		args args
		step string
		row  []int64
		want *stores.Decision // nil: it makes no sense
	}{
		{"allowed", sliding, take, []int64{1, 3, 0, 60000, 0}, &stores.Decision{Allowed: true, Remaining: 3, ResetAfter: time.Minute}},
		{"refused", sliding, take, []int64{0, 1, 7, 8, 0}, &stores.Decision{Remaining: 1, RetryAfter: 7 * time.Millisecond, ResetAfter: 8 * time.Millisecond}},
		{"never", never, take, []int64{0, 5, 0, 8, 0}, &stores.Decision{Remaining: 5, ResetAfter: 8 * time.Millisecond}},
		{"delayed", leaky, take, []int64{1, 0, 0, 3000001, 1001}, &stores.Decision{Allowed: true, ResetAfter: 3001 * time.Millisecond, Delay: 1001 * time.Microsecond}},
		{"refused by a bucket", leaky, take, []int64{0, 0, 1, 1, 0}, &stores.Decision{RetryAfter: time.Millisecond, ResetAfter: time.Millisecond}},
		{"looked at", sliding, peek, []int64{1, 2, 0, 60000, 0}, &stores.Decision{Allowed: true, Remaining: 2, ResetAfter: time.Minute}},
		{"refunded", sliding, refund, []int64{1, 5, 0, 0, 0}, &stores.Decision{Allowed: true, Remaining: 5}},

		{"more remains than can", sliding, take, []int64{1, 4, 0, 60000, 0}, nil},
		{"all remains", sliding, take, []int64{1, 6, 0, 60000, 0}, nil},
		{"less than nothing remains", sliding, take, []int64{1, -1, 0, 60000, 0}, nil},
		{"refused with room", sliding, take, []int64{0, 2, 7, 8, 0}, nil},
		{"refused without a wait", sliding, take, []int64{0, 1, 0, 8, 0}, nil},
		{"never, after a wait", never, take, []int64{0, 5, 1, 8, 0}, nil},
		{"a reset before the retry", sliding, take, []int64{0, 1, 9, 8, 0}, nil},
		{"allowed with a wait", sliding, take, []int64{1, 3, 1, 8, 0}, nil},
		{"a delay of none", sliding, take, []int64{1, 3, 0, 8, 1}, nil},
		{"a delay of a refusal", leaky, take, []int64{0, 0, 1, 1, 1}, nil},
		{"a delay of a look", leaky, peek, []int64{1, 4, 0, 1, 1}, nil},
		{"a look without room", sliding, peek, []int64{1, 1, 0, 60000, 0}, nil},
		{"a refund refused", sliding, refund, []int64{0, 0, 1, 1, 0}, nil},
		{"a look at a counter that is none", hit(stores.FixedWindow(5, time.Minute), 2), refund, []int64{1, 2, -3, 0, 0}, nil},
		{"as long as can be", sliding, take, []int64{1, 3, 0, longest / 1000, 0}, &stores.Decision{Allowed: true, Remaining: 3, ResetAfter: longest / 1000 * time.Millisecond}},
		{"too long", sliding, take, []int64{1, 3, 0, longest/1000 + 1, 0}, nil},
		{"too long a wait", leaky, take, []int64{0, 1, longest + 1, longest + 1, 0}, nil},
		{"too long a delay", leaky, take, []int64{1, 3, 0, 1, longest + 1}, nil},
	}
	for _, tc := range cases {
		require.Equal(t, tc.want != nil, tc.args.sound(tc.step, tc.row), tc.name)
		if tc.want != nil {
			require.Equal(t, *tc.want, tc.args.decision(tc.row), tc.name)
		}
	}
}

// FuzzRows: whatever a server says to a chain, it either makes no sense as a whole, or
// is a decision that can be true for each hit up to where the chain ends.
func FuzzRows(f *testing.F) {
	for _, s := range []string{
		`[1,4,0,60000,0,1,4,0,60000,0,1,4,0,1,0]`, `[0,0,1,1,0]`, `[1,4,0,60000,0,0,0,1,1,0]`, `[1,4,0,1,0,"WRONGTYPE x"]`, `["ERR x"]`,
		`[1,4,0,60000,0,1]`, `[1,4,9007199254740993,60000,0]`, `[1,-4,0,0,0]`, `[1,4,0,0,-5]`, `null`, `[]`, `[null,null,null,null,null]`, `[1.0,4,0,0,0]`,
	} {
		f.Add([]byte(`[{"result":`+s+`}]`), uint8(0), uint8(1))
		f.Add([]byte(`[{"result":`+s+`}]`), uint8(7), uint8(3))
	}
	limits := []stores.Limit{
		stores.FixedWindow(5, time.Minute), stores.FixedWindow(5, time.Minute).BlockFor(time.Hour), stores.SlidingWindow(5, time.Minute),
		stores.TokenBucket(5, time.Minute), stores.LeakyBucket(5, time.Minute), stores.SlidingLog(5, time.Minute),
	}
	f.Fuzz(func(t *testing.T, body []byte, open, shape uint8) {
		var hits []asked
		for i := range 3 {
			a := argsOf(stores.Hit{Key: "k", Limit: limits[(int(shape)+i)%len(limits)], Cost: 1 + int(shape)%7})
			a.open = open>>i&1 == 1
			hits = append(hits, asked{args: a, key: "k", at: i})
		}
		var slots [1]slot
		if err := parse(body, slots[:]); err != nil || slots[0].kind != isList || len(slots[0].list) == 0 || len(slots[0].list) > 15 || len(slots[0].list)%rowLength != 0 {
			return
		}
		rows, failed := slots[0].list, slots[0].text != ""
		if !soundChain(hits, rows, failed) {
			return
		}
		decided := len(rows) / rowLength
		for i := range decided {
			row := rows[i*rowLength : (i+1)*rowLength]
			last := row[0] == 0 && !hits[i].open
			require.Equal(t, last || i == 2, i == decided-1 && !failed, "a chain ends at a refusal or at its end")
			if hits[i].way == counter {
				continue
			}
			d := hits[i].decision(row)
			require.Equal(t, row[0] == 1, d.Allowed)
			require.GreaterOrEqual(t, d.Remaining, 0)
			require.LessOrEqual(t, d.Remaining, 5)
			require.GreaterOrEqual(t, d.ResetAfter, d.RetryAfter)
			require.GreaterOrEqual(t, d.RetryAfter, time.Duration(0))
			require.GreaterOrEqual(t, d.Delay, time.Duration(0))
			require.Equal(t, !d.Allowed && hits[i].cost <= 5, d.RetryAfter > 0)
		}
	})
}
