package memory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// burst is how an attacker who knows the limit spreads his hits over milliseconds: some
// at the start, to open a window; nothing until a moment; then all that passes, for so
// many milliseconds; then nothing for a while, and again all that passes.
type burst struct {
	first, at, length, again int
}

// admitted returns how many hits passed in each millisecond, and when they depart.
func (b burst) admitted(limit stores.Limit, steps int) (passed, departed []int) {
	k := newTables(10).of(&limit)
	window := int(limit.Window / time.Millisecond)
	passed, departed = make([]int, steps), make([]int, steps+2*window)
	hit := func(ms int) bool {
		d := k.take("key", limit, 1, 0, 0, int64(time.Millisecond)*int64(ms+1))
		if d.Allowed {
			passed[ms]++
			departed[ms+int((d.Delay+time.Millisecond-1)/time.Millisecond)]++
		}
		return d.Allowed
	}
	for range b.first {
		hit(0)
	}
	for ms := b.at; ms < steps; ms++ {
		if ms >= b.at+b.length && ms < b.again {
			continue
		}
		for hit(ms) {
		}
	}
	return passed, departed
}

// densest returns the most in any interval of so many milliseconds.
func densest(counts []int, length int) (most int) {
	sum := 0
	for i, n := range counts {
		sum += n
		if i >= length {
			sum -= counts[i-length]
		}
		most = max(most, sum)
	}
	return most
}

// What the worst of many ways to press at the edges of a limit of 100 gets through. It
// is what the README says of each algorithm.
func TestDoubledBurstAtAWindowsEdge(t *testing.T) {
	const quota, window = 100, 200
	tests := []struct {
		limit stores.Limit
		// The most in any interval of a window's length, in a hundredth of that, and of
		// departures in a window's length.
		whole, hundredth, departures int
	}{
		{stores.FixedWindow(quota, window*time.Millisecond), 199, 199, 199},
		{stores.SlidingWindow(quota, window*time.Millisecond), 198, 100, 198},
		{stores.SlidingLog(quota, window*time.Millisecond), 100, 100, 100},
		{stores.TokenBucket(quota, window*time.Millisecond), 199, 100, 199},
		{stores.LeakyBucket(quota, window*time.Millisecond), 199, 100, 100},
	}
	for _, test := range tests {
		var whole, hundredth, departures int
		for _, first := range []int{1, quota / 2, quota} {
			for _, at := range []int{1, 20, 100, 180, 198, 199, 200, 201, 300, 398, 399, 400, 401} {
				for _, length := range []int{1, 20, 199, 800} {
					for _, pause := range []int{0, 2, 198, 199, 200} {
						passed, departed := burst{first, at, length, at + length + pause}.admitted(test.limit, 4*window)
						whole = max(whole, densest(passed, window))
						hundredth = max(hundredth, densest(passed, window/100))
						departures = max(departures, densest(departed, window))
					}
				}
			}
		}
		t.Logf("%-17s %3d in a window's length, %3d in a hundredth of it, %3d departures in a window's length", test.limit, whole, hundredth, departures)
		require.Equal(t, [3]int{test.whole, test.hundredth, test.departures}, [3]int{whole, hundredth, departures}, test.limit.String())
	}
}
