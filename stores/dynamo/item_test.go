package dynamo

import (
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

func FuzzReadWindow(f *testing.F) {
	for _, n := range []string{"0", "5", "-1", "1.5", "1e3", "NaN", "", " 5", "+5", "9007199254740991", "9007199254740992", "9223372036854775808", "٥"} {
		f.Add(n, "1790000000000", uint8(0))
		f.Add("1", n, uint8(0))
	}
	f.Add("1", "1", uint8(0xff))
	f.Fuzz(func(t *testing.T, n, end string, kinds uint8) {
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
		w, ok := readWindow(map[string]types.AttributeValue{countAttribute: attribute(n, kinds&15), endAttribute: attribute(end, kinds>>4)})
		if !ok {
			return
		}
		require.Zero(t, kinds&15%6)
		require.True(t, w.n >= 0 && w.n <= maxExact && w.end > 0 && w.end <= maxExact, "%+v", w)
		again, ok := readWindow(map[string]types.AttributeValue{countAttribute: number(w.n), endAttribute: number(w.end)})
		require.True(t, ok)
		require.Equal(t, w, again)
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
