package dynamo

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
)

// Ten hits a second for ten minutes against 60 in a minute, by two instances in turn of
// which one has a clock that is off and, there being no Date header,
// stays so:
// what they admit together is what one clock would admit, to a tenth. What suffers is
// who gets it.
func TestSkewTable(t *testing.T) {
	if testing.Short() || RaceDetector {
		t.Skip("300,000 hits")
	}
	const hits = 6000
	skews := []time.Duration{0, 500 * time.Millisecond, -500 * time.Millisecond, 10 * time.Second, -10 * time.Second}
	var table strings.Builder
	for _, limit := range everyLimit(60, time.Minute) {
		ideal := 0
		fmt.Fprintf(&table, "\n%-8s", limit.Algorithm)
		for _, skew := range skews {
			synctest.Test(t, func(t *testing.T) {
				client := dynamotest.Bare(t)
				good, skewed := newStore(t, client), newStore(t, client)
				skewed.clock.read = func() time.Time { return time.Now().Add(skew) }
				h := stores.Hit{Key: "k", Limit: limit}
				all, bySkewed := 0, 0
				for i := range hits {
					s := good
					if i%2 == 1 {
						s = skewed
					}
					if take(t, s, h).Allowed {
						all++
						if s == skewed {
							bySkewed++
						}
					}
					time.Sleep(100 * time.Millisecond)
				}
				fmt.Fprintf(&table, "  %6v: %d (%d)", skew, all, bySkewed)
				if skew == 0 {
					ideal = all
					require.InDelta(t, 600, all, 61)
				}
				require.InDelta(t, ideal, all, float64(ideal)/10+1, "%v off by %v", limit, skew)
			})
		}
	}
	t.Log(table.String())
}
