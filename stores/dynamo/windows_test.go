package dynamo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWindowsAreBounded(t *testing.T) {
	w := newWindows(1000)
	require.Zero(t, w.end("unknown"))
	w.learn("in use", 7)
	for i := range 100_000 {
		w.learn(fmt.Sprint(i), int64(i+1))
		require.LessOrEqual(t, w.table.Len(), 1000)
		if i%400 == 0 {
			require.Equal(t, int64(7), w.end("in use"), "what is in use outlives a flood")
		}
	}
	require.Equal(t, int64(100_000), w.end("99999"))
	require.Zero(t, w.end("0"))
	w.learn("in use", 9)
	require.Equal(t, int64(9), w.end("in use"))
	w.forget("in use")
	require.Zero(t, w.end("in use"))
}
