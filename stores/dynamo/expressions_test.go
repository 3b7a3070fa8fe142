package dynamo

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// The service refuses expressions above 4,096 bytes, unused or undefined names and values,
// and bare reserved words (B33). Engines check some of that only, so it is checked here.
func TestExpressions(t *testing.T) {
	words := regexp.MustCompile(`[#:]?[A-Za-z_]+`)
	known := map[string]bool{"SET": true, "ADD": true, "AND": true, "OR": true, "attribute_not_exists": true}
	tk := &taking{cost: 1, quota: 5, window: 1000, owed: 1, until: 500}
	for name, e := range map[string]*expression{"count": &count, "pay": &pay, "fill": &fill, "open": &open, "shorten": &shorten, "giveBack": &giveBack, "empty": &empty} {
		t.Run(name, func(t *testing.T) {
			require.Less(t, len(e.update), 4096)
			require.Less(t, len(e.condition), 4096)
			used := make(map[string]bool)
			for _, word := range words.FindAllString(e.update+" "+e.condition, -1) {
				used[word] = true
				if !strings.ContainsAny(word[:1], "#:") {
					require.True(t, known[word], "a bare %q", word)
				}
			}
			for alias, attribute := range e.names {
				require.True(t, used[alias], "unused %s", alias)
				require.Contains(t, []string{countAttribute, endAttribute, TTLAttribute}, attribute)
			}
			for word := range used {
				if word[0] == '#' {
					require.Contains(t, e.names, word, "undefined")
				}
			}
			if e == &giveBack || e == &empty {
				return // their values are made by Refund, whose tests run on a strict engine
			}
			values := tk.values(e, 1, window{1, 1})
			for value := range values {
				require.True(t, used[value], "unused %s", value)
			}
			for word := range used {
				if word[0] == ':' {
					require.Contains(t, values, word, "undefined")
				}
			}
		})
	}
}

// Every request shows the whole item in both answers, or a refusal would need a read.
func TestInputShowsTheItem(t *testing.T) {
	in := (&Store{table: "limits"}).input("k", &count, nil)
	require.Equal(t, "ALL_NEW", string(in.ReturnValues))
	require.Equal(t, "ALL_OLD", string(in.ReturnValuesOnConditionCheckFailure))
	require.Equal(t, "limits", *in.TableName)
	require.NoError(t, (*Store)(nil).Supports(stores.FixedWindow(1, 1e9)))
}
