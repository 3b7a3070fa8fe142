package lambda

import (
	"slices"
	"testing"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/require"
)

func TestMergeLines(t *testing.T) {
	for _, tt := range []struct {
		name         string
		ours, theirs []string
		want         string
	}{
		{"others", []string{`"a";r=1, "b";r=2`}, []string{`"c";r=3`}, `"a";r=1, "b";r=2, "c";r=3`},
		{"the same", []string{`"a";r=4, "b";r=2`}, []string{`"a";r=3`}, `"b";r=2, "a";r=3`},
		{"all the same", []string{`"a";r=4`}, []string{`"a";r=3, "b";r=1`}, `"a";r=3, "b";r=1`},
		{"several lines", []string{`"a";r=4`, `"b";r=4`}, []string{`"b" ;r=3`, ` "c"`}, `"a";r=4, "b" ;r=3, "c"`},
		{"nothing there", []string{`"a";r=4`}, []string{"", " , ,"}, `"a";r=4`},
		{"quotes", []string{`"a,\"b\";c";r=1, "d"`}, []string{`"a,\"b\";c";r=0`}, `"d", "a,\"b\";c";r=0`},
		{"in a name", []string{`"a";r=1`}, []string{`"x, \"a\"";r=0`}, `"a";r=1, "x, \"a\"";r=0`},
		{"rubbish", []string{`"a";r=1`}, []string{`"a`}, `"a";r=1, "a`},
	} {
		require.Equal(t, []string{tt.want}, mergeLines("Ratelimit", tt.ours, tt.theirs), tt.name)
	}
	require.Equal(t, []string{"1"}, mergeLines("X-Ratelimit-Limit", []string{"5"}, []string{"1"}))
}

// Whatever well-formed list is there, the outcome is one, names each policy of ours
// once, and loses nothing of theirs.
func FuzzMergeLines(f *testing.F) {
	f.Add(`"a";r=1, "b";r=2`, `"a";r=0;t=1, tok;x="a,b"`)
	f.Add(`"a,\"b\"";r=1`, `"b";r=1,"a,\"b\"";r=0`)
	f.Fuzz(func(t *testing.T, ours, theirs string) {
		names := func(line string) (names []any, ok bool) {
			list, err := httpsfv.UnmarshalList([]string{line})
			for _, member := range list {
				item, isItem := member.(httpsfv.Item)
				if _, isString := item.Value.(string); !isItem || !isString || slices.Contains(names, item.Value) {
					return nil, false
				}
				names = append(names, item.Value)
			}
			return names, err == nil && len(names) > 0
		}
		a, ok := names(ours)
		b, alsoOK := names(theirs)
		if !ok || !alsoOK {
			return
		}
		merged := mergeLines("Ratelimit", []string{ours}, []string{theirs})
		require.Len(t, merged, 1)
		got, ok := names(merged[0])
		require.True(t, ok, "%q and %q make %q", ours, theirs, merged[0])
		require.Subset(t, got, a)
		require.Subset(t, got, b)
		require.Equal(t, b, got[len(got)-len(b):])
	})
}
