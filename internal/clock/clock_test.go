package clock

import (
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestFollowsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		first := c.Now()
		require.Positive(t, first)
		time.Sleep(3 * time.Second)
		require.Equal(t, 3*time.Second, time.Duration(c.Now()-first))
	})
}

// skew returns t with its wall clock moved by d and its monotonic clock as it was,
// which is what time.Now returns after the wall clock was set, or after a freeze
// that the monotonic clock slept through. Package time has no way to make one: its
// wall reading keeps the seconds since 1885 above 30 bits of nanoseconds.
func skew(t *testing.T, at time.Time, d time.Duration) time.Time {
	t.Helper()
	field := reflect.ValueOf(&at).Elem().FieldByName("wall")
	wall := (*uint64)(unsafe.Pointer(field.UnsafeAddr()))
	*wall += uint64(d/time.Second) << 30
	return at
}

func TestWallSteps(t *testing.T) {
	start := time.Now()
	at := func(mono, wall time.Duration) time.Time { return skew(t, start.Add(mono), wall) }
	const h = time.Hour
	tests := []struct {
		name     string
		readings []time.Time
		want     time.Duration
	}{
		{"both go on", []time.Time{at(1*time.Second, 0), at(2*time.Second, 0)}, 2 * time.Second},
		{"frozen, monotonic slept", []time.Time{at(0, h)}, h},
		{"frozen twice", []time.Time{at(0, h), at(time.Second, h), at(time.Second, 2*h)}, 2*h + time.Second},
		{"wall set back", []time.Time{at(time.Second, -h), at(2*time.Second, -h)}, 2 * time.Second},
		{"frozen after the wall was set back", []time.Time{at(time.Second, -h), at(time.Second, 0)}, h + time.Second},
		{"older readings move nothing", []time.Time{at(4*time.Second, 0), at(time.Second, 0), at(5*time.Second, 0)}, 5 * time.Second},
		{"an older reading of a monotonic clock that stood still", []time.Time{at(time.Second, h), at(time.Second, 0), at(2*time.Second, h)}, h + 2*time.Second},
		{"wall set back while the monotonic clock stood still", []time.Time{at(time.Second, 0), at(time.Second, -h), at(2*time.Second, -h)}, 2 * time.Second},
		{"an older reading of a wall that was ahead for a while", []time.Time{at(4*time.Second, 0), at(time.Second, h), at(5*time.Second, 0)}, h + 5*time.Second},
		{"the same in order", []time.Time{at(time.Second, h), at(4*time.Second, 0), at(5*time.Second, 0)}, h + 5*time.Second},
		{"an older reading from before a step", []time.Time{at(4*time.Second, h), at(time.Second, 0), at(5*time.Second, h)}, h + 5*time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var c Clock
			first := c.At(start)
			last := first
			for _, r := range test.readings {
				last = c.At(r)
			}
			require.Equal(t, test.want, time.Duration(last-first))
		})
	}
}

func TestReadingOftenDoesNotHurry(t *testing.T) {
	var c Clock
	start := time.Now()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			last := int64(0)
			for range 50_000 {
				now := c.Now()
				if now < last {
					t.Errorf("%d after %d", now, last)
					return
				}
				last = now
			}
		})
	}
	wg.Wait()
	now := time.Duration(c.Now())
	require.LessOrEqual(t, now, time.Since(start)+tolerance)
}
