package memory

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

func TestInvest(t *testing.T) {
	const keys = 1000
	for _, c := range []struct{ quota, invest, hits, flood int }{{5, 4, 3, 1}, {5, 2, 1, 64}, {10, 8, 7, 1}, {100, 64, 63, 1}, {100, 4, 3, 1}} {
		s := open(t, keys)
		limit := stores.FixedWindow(c.quota, time.Hour)
		cost := 0
		for i := range keys {
			for range c.invest {
				take(t, s, "invested"+strconv.Itoa(i), limit)
				cost++
			}
		}
		allowed, n := 0, 0
		for range 2000 {
			for range c.hits {
				if take(t, s, "target", limit).Allowed {
					allowed++
				}
			}
			for range c.flood {
				n++
				cost++
				take(t, s, "new"+strconv.Itoa(n), limit)
			}
		}
		per := float64(cost) / float64(allowed)
		t.Logf("%+v: %d allowed for %d requests = %.3f cap per hit", c, allowed, cost, per/keys)
	}
	require.True(t, true)
}
