package storetest

import (
	"slices"

	"github.com/sallyport/sallyport/stores"
)

var mixedBatchClauses = []clause{
	{"TakeAll mixes algorithms, and stops at the refusal of any", batchMixed},
	{"parallel TakeAlls of several algorithms pass exactly the quotas", batchMixedParallel},
}

// batchMixed has each algorithm refuse in turn, behind some and before others.
func batchMixed(c *check) {
	s, b := c.batcher()
	forms := c.supported(s, plain)
	hits := make([]stores.Hit, len(forms))
	for i, f := range forms {
		hits[i] = costing(c.hit(f, 10, long), 1+i%2)
	}
	left := slices.Repeat([]int{10}, len(forms))
	for range 2 {
		for i, d := range c.takeAll(b, len(hits), hits...) {
			left[i] -= hits[i].Cost
			c.want("TakeAll", hits[i], d, true, left[i])
		}
	}
	for at, f := range forms {
		full := c.hit(f, 3, long)
		c.fill(s, full, 3)
		asked := slices.Insert(slices.Clone(hits), at, full)
		decided := c.takeAll(b, at+1, asked...)
		for i, d := range decided[:at] {
			if !uncharged(d, decided) {
				left[i] -= hits[i].Cost
				c.want("TakeAll", hits[i], d, true, left[i])
			}
		}
		c.want("TakeAll", full, decided[at], false, 0)
	}
	for i, h := range hits {
		c.fill(s, costing(h, 1), left[i])
	}
	for i, f := range forms { // a key that it holds twice counts twice
		h, behind := c.hit(f, 3, long), c.hit(forms[(i+1)%len(forms)], 2, long)
		d := c.takeAll(b, 3, costing(h, 2), h, h, behind)
		c.want("TakeAll", costing(h, 2), d[0], true, 1)
		c.want("TakeAll", h, d[1], true, 0)
		c.want("TakeAll", h, d[2], false, 0)
		c.fill(s, behind, 2)
	}
}

// batchMixedParallel gives each caller a key of its own of another algorithm, before
// or behind the one they share.
func batchMixedParallel(c *check) {
	s, _ := c.batcher()
	by := c.openMany(instances)
	forms := c.supported(s, plain)
	for i, f := range forms {
		h := c.hit(f, 5, long)
		own := make([]stores.Hit, flood)
		for j := range own {
			own[j] = c.hit(forms[(i+1)%len(forms)], 2, long)
		}
		shared, errs := make([]stores.Decision, flood), make([]error, flood)
		parallel(flood, func(j int) {
			var out [2]stores.Decision
			_, errs[j] = by[j%len(by)].(stores.Batcher).TakeAll(c.Context(), []stores.Hit{h, own[j]}, out[:])
			shared[j] = out[0]
		})
		for j, err := range errs {
			c.must("TakeAll", h, err)
			c.judge("TakeAll", h, shared[j])
		}
		c.wantExactly(h, shared)
		for j, d := range shared {
			if j%10 == 0 || d.Allowed {
				remaining := 1
				if d.Allowed {
					remaining = 0
				}
				c.allow(s, own[j], remaining)
			}
		}
	}
}
