package storetest

import (
	"errors"
	"time"

	"github.com/sallyport/sallyport/stores"
)

var supportClauses = []clause{
	{"a fixed window is always supported", supportsFixed},
	{"Supports and Take agree", supportsAgrees},
}

func supportsFixed(c *check) {
	s, ok := c.open().(stores.Supporter)
	if !ok {
		c.Skipf("the store has no Supports")
	}
	for _, l := range []stores.Limit{
		stores.FixedWindow(1, time.Millisecond),
		stores.FixedWindow(5, 10*time.Minute),
		stores.FixedWindow(maxQuota, maxWindow),
		stores.Cooldown(24 * time.Hour),
	} {
		if err := s.Supports(l); err != nil {
			c.Fatalf("Supports %v: error %v: want nil", l, err)
		}
	}
}

// supportsAgrees also holds for a store without Supports: what it can't serve, Take
// says with the same error, and nothing else.
func supportsAgrees(c *check) {
	s := c.open()
	supporter, _ := s.(stores.Supporter)
	limits := []stores.Limit{
		stores.FixedWindow(5, long),
		stores.SlidingWindow(5, long),
		stores.SlidingWindow(1000, long),
		stores.SlidingLog(5, long),
		stores.SlidingLog(10_000, long),
		stores.TokenBucket(5, long),
		stores.LeakyBucket(5, long),
	}
	for _, l := range limits {
		limits = append(limits, l.BlockFor(long))
	}
	for _, l := range limits {
		h := stores.Hit{Key: c.keys.next(), Limit: l}
		d, err := s.Take(c.Context(), h)
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			c.Fatalf("Take %v: error %v: want a decision, or one that wraps errors.ErrUnsupported", l, err)
		}
		if err == nil && !d.Allowed {
			c.Fatalf("Take %v: %s: want the first hit on a key allowed", l, state(d))
		}
		if supporter == nil {
			continue
		}
		said := supporter.Supports(l)
		if said != nil && !errors.Is(said, errors.ErrUnsupported) {
			c.Fatalf("Supports %v: error %v: want nil or one that wraps errors.ErrUnsupported", l, said)
		}
		if (said == nil) != (err == nil) {
			c.Fatalf("Supports %v: %v, but Take: %v: want them to agree", l, said, err)
		}
	}
}
