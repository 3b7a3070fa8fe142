package storetest

import (
	"slices"
	"sync"
	"time"

	"github.com/sallyport/sallyport/stores"
)

var parallelClauses = []clause{
	{"exactly the quota passes", parallelQuota},
	{"exactly the quota passes after the window's end", parallelAtTheEdge},
	{"costs together never exceed the quota", parallelCosts},
	{"exactly one of a hundred passes a cooldown", parallelCooldown},
}

const (
	instances = 10
	flood     = 100
	rounds    = 8
)

// parallel runs f for 0 to n-1 at once, each on a goroutine of its own. f must not
// end the test.
func parallel(n int, f func(i int)) {
	gate := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-gate
			f(i)
		})
	}
	close(gate)
	all.Wait()
}

// storm takes hits at once, by the instances in turn.
func (c *check) storm(by []stores.Store, hits []stores.Hit) []stores.Decision {
	c.Helper()
	decisions, errs := make([]stores.Decision, len(hits)), make([]error, len(hits))
	parallel(len(hits), func(i int) {
		decisions[i], errs[i] = by[i%len(by)].Take(c.Context(), hits[i])
	})
	for i, h := range hits {
		c.must("Take", h, errs[i])
		c.judge("Take", h, decisions[i])
	}
	return decisions
}

// wantExactly wants as many passed as the quota has room for, each with another
// Remaining.
func (c *check) wantExactly(h stores.Hit, decisions []stores.Decision) {
	c.Helper()
	var remaining []int
	for _, d := range decisions {
		if d.Allowed {
			remaining = append(remaining, d.Remaining)
		}
	}
	if len(remaining) != h.Limit.Quota {
		c.Fatalf("%d of %d parallel hits on %v passed: want exactly the quota", len(remaining), len(decisions), h.Limit)
	}
	slices.Sort(remaining)
	for i, r := range remaining {
		if r != i {
			c.Fatalf("the parallel hits that passed on %v had %v remaining: want each number from 0 once", h.Limit, remaining)
		}
	}
}

func parallelQuota(c *check) {
	by := c.openMany(instances)
	for range rounds {
		h := c.fixed(5, long)
		c.wantExactly(h, c.storm(by, slices.Repeat([]stores.Hit{h}, flood)))
		c.refuse(by[0], h, 0)
	}
}

// parallelAtTheEdge lets a window that is full end and floods the next one, which
// one of the hits has to open, once.
func parallelAtTheEdge(c *check) {
	by := c.openMany(instances)
	c.patiently(instant, func(window time.Duration) bool {
		h := c.fixed(5, window)
		w := c.opening(h)
		if !w.fill(by[0], 5) {
			return false
		}
		for range 2 {
			w.over()
			w = c.opening(h)
			decisions := c.storm(by, slices.Repeat([]stores.Hit{h}, flood))
			if w.ended() {
				return false
			}
			c.wantExactly(h, decisions)
		}
		return true
	})
}

func parallelCosts(c *check) {
	by := c.openMany(instances)
	for range rounds / 2 {
		const quota = 20
		h := c.fixed(quota, long)
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
		// More hits cost 1 than there is quota, so one of them was refused, and then
		// the quota was used up.
		if used != quota {
			c.Fatalf("parallel hits with costs of 1 to 3 on %v took %d together: want exactly the quota", h.Limit, used)
		}

		h = costing(c.fixed(11, long), 2)
		passed := 0
		for _, d := range c.storm(by, slices.Repeat([]stores.Hit{h}, flood)) {
			if d.Allowed {
				passed++
			}
		}
		if passed != 5 {
			c.Fatalf("%d parallel hits of cost 2 passed on %v: want 5", passed, h.Limit)
		}
		c.allow(by[0], costing(h, 1), 0)
	}
}

func parallelCooldown(c *check) {
	by := c.openMany(instances)
	for range rounds {
		h := stores.Hit{Key: c.keys.next(), Limit: stores.Cooldown(long)}
		c.wantExactly(h, c.storm(by, slices.Repeat([]stores.Hit{h}, flood)))
		for _, s := range by {
			c.refuse(s, h, 0)
		}
	}
}
