package dynamo

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

func logHit(key string, quota, milliseconds int) stores.Hit {
	return stores.Hit{Key: key, Limit: stores.SlidingLog(quota, time.Duration(milliseconds)*time.Millisecond)}
}

// Whatever an item holds, what is read of it is in bounds or nothing at all, and
// neither deciding nor wording the answer panics.
func FuzzReadItem(f *testing.F) {
	for _, n := range []string{"0", "5", "-1", "1.5", "1e3", "NaN", "", " 5", "+5", "9007199254740991", "9007199254740992", "9223372036854775808", "٥"} {
		for algorithm := range uint8(5) {
			f.Add(algorithm, n, "1790000000000", "3", uint8(0))
			f.Add(algorithm, "1", n, "1790000000000000", uint8(0))
			f.Add(algorithm, "1", "1790000000000", n, uint8(0x40))
		}
	}
	f.Add(uint8(0), "1", "1", "1", uint8(0xff))
	f.Fuzz(func(t *testing.T, algorithm uint8, a, b, c string, kinds uint8) {
		attribute := func(value string, kind uint8) types.AttributeValue {
			switch kind % 6 {
			case 1:
				return &types.AttributeValueMemberS{Value: value}
			case 2:
				return &types.AttributeValueMemberNULL{Value: true}
			case 3:
				return (*types.AttributeValueMemberN)(nil)
			case 4:
				return nil
			case 5:
				return &types.AttributeValueMemberNS{Value: []string{value}}
			}
			return &types.AttributeValueMemberN{Value: value}
		}
		va, vb, vc := attribute(a, kinds&7), attribute(b, kinds>>3&3), attribute(c, kinds>>5)
		item := map[string]types.AttributeValue{
			countAttribute: va, endAttribute: vb, olderAttribute: vc,
			wholeAttribute: vb, topAttribute: va, "s0": vb, "s7": vc, "s99": vb, "s100": va, "s07": va, "sx": va, blockAttribute: vc,
		}
		for name, v := range item {
			if v == nil {
				delete(item, name)
			}
		}
		limit := everyLimit(7, time.Minute)[algorithm%5].BlockFor(time.Hour)
		tk := newTaking(nil, stores.Hit{Key: "k", Limit: limit, Cost: 2})
		s, ok := tk.read(item)
		if !ok {
			return
		}
		for _, i := range []int64{s.End, s.N, s.P, s.Block, s.top} {
			require.True(t, i >= 0 && i <= maxExact, "%+v", s)
		}
		for _, now := range []int64{1_790_000_000_000, 1_790_000_000_000_000, s.End, s.End + 1} {
			for _, owed := range []int64{0, 3, 7} {
				tk.owed = owed
				tk.write(&s, now)
				tk.mend(&s, now)
				tk.giveBack(&s, now, 5)
				weighed := s
				answer := tk.weigh(&weighed, now)
				d := tk.decision(answer)
				require.True(t, d.Remaining >= 0 && d.Remaining <= 7, "%+v: %+v", s, d)
				require.True(t, d.RetryAfter >= 0 && d.ResetAfter >= d.RetryAfter && d.ResetAfter <= time.Hour, "%+v: %+v", s, d)
				if s.Block > now {
					require.False(t, d.Allowed)
				}
			}
		}
	})
}

func FuzzPrintable(f *testing.F) {
	f.Add("plain", 3)
	f.Add("tab\tand\x00and ü", 100)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if limit < 0 {
			return
		}
		out := printable(s, limit)
		require.LessOrEqual(t, len(out), limit)
		require.True(t, utf8.ValidString(out))
		for _, c := range []byte(out) {
			require.True(t, c >= 0x20 && c <= 0x7e, "%q", out)
		}
	})
}
