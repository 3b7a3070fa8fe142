package storetest

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/sallyport/sallyport/stores"
)

var formCountClauses = []formClause{
	{"exactly the quota passes", formQuota},
	{"a hit takes its cost, and a refused one nothing", formCosts},
	{"another quota applies at once and keeps what was counted", formRequota},
	{"parallel hits pass exactly the quota", formParallel},
	{"parallel hits pass exactly the quota when it is back", formParallelLater},
	{"a context that is done counts nothing", formContext},
}

func formQuota(c *check, f form) {
	one, other := c.open(), c.open()
	for _, quota := range []int{1, 2, 5, 20} {
		h := c.hit(f, quota, long)
		for i := range quota {
			c.allow(one, h, quota-1-i)
			one, other = other, one
		}
		for range 20 {
			c.refuse(one, h, 0)
			one, other = other, one
		}
	}
}

func formCosts(c *check, f form) {
	one, other := c.open(), c.open()
	h := c.hit(f, 10, long)
	c.allow(one, costing(h, 3), 7)
	c.allow(other, costing(h, 0), 6)
	for range 10 {
		c.refuse(one, costing(h, 10), 6)
		c.refuse(other, costing(h, 7), 6)
		for _, hopeless := range []int{11, math.MaxInt - 1, math.MaxInt} {
			c.take(one, costing(h, hopeless)) // refused, as for any limit
		}
	}
	c.allow(one, costing(h, 4), 2)
	c.refuse(other, costing(h, 3), 2)
	c.allow(other, costing(h, 2), 0)
	c.refuse(one, h, 0)
}

// formRequota: of a window and a log the count stays, of a bucket the share that is
// full.
func formRequota(c *check, f form) {
	one, other := c.open(), c.open()
	h := c.hit(f, 10, long)
	c.allow(one, costing(h, 2), 8)
	raised, lowered, least := withQuota(h, 20), withQuota(h, 5), withQuota(h, 2)
	if f.bucket() {
		c.allow(other, costing(raised, 4), 12) // 4 of 20 were used
		c.allow(one, costing(lowered, 2), 1)   // 2 of 5
		c.allow(other, lowered, 0)
		c.refuse(one, least, 0)
		return
	}
	c.allow(other, costing(raised, 1), 17)
	c.allow(one, lowered, 1)
	c.allow(other, lowered, 0)
	c.refuse(one, least, 0)
	c.refuse(other, lowered, 0)
}

func formParallel(c *check, f form) {
	by := c.openMany(instances)
	for range rounds / 4 {
		h := c.hit(f, 5, long)
		c.wantExactly(h, c.storm(by, slices.Repeat([]stores.Hit{h}, flood)))
		c.refuse(by[0], h, 0)
	}

	const quota = 20
	h := c.hit(f, quota, long)
	hits := make([]stores.Hit, flood)
	for i := range hits {
		hits[i] = costing(h, 1+i%3)
	}
	used := 0
	for i, d := range c.storm(by, hits) {
		if d.Allowed {
			used += hits[i].Cost
		}
	}
	if used != quota {
		c.Fatalf("parallel hits with costs of 1 to 3 on %v took %d together: want exactly the quota", h.Limit, used)
	}
}

// formParallelLater floods a key whose quota was used up and is back: hits at once meet
// what the store keeps of before. No window may end during the flood, and no bucket
// refill.
func formParallelLater(c *check, f form) {
	by := c.openMany(instances)
	c.patiently(instant, func(window time.Duration) bool {
		steady := window - grain
		if f.bucket() {
			steady = window/5 - grain
		}
		h := c.hit(f, 5, window)
		start := c.now()
		c.take(by[0], costing(h, 5))
		d := c.take(by[0], h)
		if _, most := c.since(start); most > steady {
			return false
		}
		c.want("Take", h, d, false, 0)
		c.sleep(d.ResetAfter + grain)
		start = c.now()
		decisions := c.storm(by, slices.Repeat([]stores.Hit{h}, flood))
		if _, most := c.since(start); most > steady {
			return false
		}
		c.wantExactly(h, decisions)
		return true
	})
}

func formContext(c *check, f form) {
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	s := c.open()
	h := c.hit(f, 5, long)
	c.allow(s, h, 4)
	for range 10 {
		for _, o := range operations(s) {
			if err := o.do(ctx, h); err != ctx.Err() && !o.lacking(err) {
				c.Fatalf("%s %v with a context that is done: error %v: want %v, as it is", o.name, h.Limit, err, ctx.Err())
			}
		}
	}
	c.fill(s, h, 4)
}
