package memory

import (
	"math/bits"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// forgotten returns how many requests on other keys, so many on each, it took until
// the table had forgotten a key with so much used, or -1 if more than most.
func (l *logs) forgotten(limit stores.Limit, used, perKey, most int) int {
	now := int64(0)
	hit := func(key string) {
		now += int64(time.Microsecond) // each hit has a stamp of its own, which is the most that it can cost
		l.take(key, limit, 1, 0, 0, now)
	}
	for range used {
		hit("offender")
	}
	for sent := 0; sent < most; sent += perKey {
		if l.Find(l.Hash("offender")) < 0 {
			return sent
		}
		for range perKey {
			hit("flood" + strconv.Itoa(sent))
		}
	}
	return -1
}

// To have a log's key forgotten costs less than for other limits, because the keys of
// the attacker take the more of the table the more they have used: what counts is the
// requests that it takes to fill a slot, 2.5 with keys of five hits, six with keys of a
// hundred. It is never less than to fill the table with keys like the offender's: 7/8 of it
// if he has used up his quota, else half of it.
func TestForgettingALog(t *testing.T) {
	const maxKeys = 512
	for _, quota := range []int{1, 5, 8, 100} {
		limit := stores.SlidingLog(quota, 12*time.Hour)
		for _, used := range []int{quota, quota - 1, quota / 2} {
			if used == 0 {
				continue
			}
			slots := 1 + (used+perPage-1)/perPage
			bar := maxKeys / slots * used / 2
			if used == quota {
				bar = maxKeys / slots * used * 7 / 8
			}
			tries := []int{quota, used}
			for k := range bits.Len(uint(quota)) {
				tries = append(tries, 1<<k)
			}
			least, each := -1, 0
			for _, perKey := range tries {
				n := newLogs(maxKeys).forgotten(limit, used, perKey, 20*maxKeys)
				if n >= 0 && (least < 0 || n < least) {
					least, each = n, perKey
				}
			}
			t.Logf("quota %3d, used %3d: forgotten after %5d requests (%d a key), bar %d", quota, used, least, each, bar)
			if least >= 0 {
				require.GreaterOrEqual(t, least, bar)
			}
		}
	}
}
