package storetest

import (
	"time"

	"github.com/sallyport/sallyport/stores"
)

var logClauses = []clause{
	{"never more than the quota passes in any interval as long as the window", logHammered},
	{"hits of one moment all count", logOneMoment},
}

func logHammered(c *check) {
	c.patiently(instant*3/4, func(window time.Duration) bool {
		const quota = 8
		w := c.twin(stores.SlidingLog(quota, window))
		all := c.hammer(w)
		if w.lost {
			return false
		}
		for i := quota; i < len(all); i++ {
			if d := all[i].to - all[i-quota].from; d < window-grain {
				c.Fatalf("%v: %d hits passed within %v", w.hit.Limit, quota+1, d)
			}
		}
		return true
	})
}

// logOneMoment hits by two instances without a pause, for stores that keep stamps by
// their time alone.
func logOneMoment(c *check) {
	one, other := c.open(), c.open()
	h := c.hit(logForm, 10, long)
	for range 5 {
		c.take(one, h)
		c.take(other, h)
	}
	for range 10 {
		c.refuse(one, h, 0)
		c.refuse(other, h, 0)
	}
}
