package lambda

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A clock that is set back neither silences a series for long nor opens it to a flood.
func TestSeriesAfterAClockSetBack(t *testing.T) {
	var s series
	write := func(now int64, times int) (lines int) {
		for range times {
			before := s.begin(nil, `"f"`, now)
			s.counts[countRequests]++
			lines += len(s.end(before, `"f"`, now))
		}
		return lines
	}
	const hour = 60 * lineEvery
	require.Equal(t, lineBurst, write(24*hour, 1000))
	require.Zero(t, write(hour, 1000), "nothing was earned")
	require.Equal(t, 1, write(hour+lineEvery-1, 1000)+write(hour+lineEvery, 1000), "a minute later")
	require.Equal(t, 1+lineBurst, write(24*hour, 1000), "the held ones, and a whole burst after a day")
}
