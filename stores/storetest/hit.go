package storetest

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/sallyport/sallyport/stores"
)

var hitClauses = []clause{
	{"an invalid hit is ErrInvalid and counts nothing", invalidHits},
	{"the bounds themselves are valid", boundsAreValid},
	{"the largest quota is counted exactly", largestQuota},
}

const (
	maxKey    = 512
	maxWindow = 10 * 365 * 24 * time.Hour
)

// maxQuota is the largest that Limit.Validate passes, 2^53-1 where an int holds it.
var maxQuota = int(min(int64(1)<<53-1, int64(math.MaxInt)))

// operation is a method of a store, whichever of the interfaces it belongs to.
type operation struct {
	name string
	do   func(context.Context, stores.Hit) error
}

// operations are those that s has.
func operations(s stores.Store) []operation {
	all := []operation{{"Take", func(ctx context.Context, h stores.Hit) error {
		_, err := s.Take(ctx, h)
		return err
	}}}
	if s, ok := s.(stores.Peeker); ok {
		all = append(all, operation{"Peek", func(ctx context.Context, h stores.Hit) error {
			_, err := s.Peek(ctx, h)
			return err
		}})
	}
	if s, ok := s.(stores.Resetter); ok {
		all = append(all, operation{"Reset", s.Reset})
	}
	if s, ok := s.(stores.Refunder); ok {
		all = append(all, operation{"Refund", s.Refund})
	}
	if s, ok := s.(stores.Batcher); ok {
		all = append(all, operation{"TakeAll", func(ctx context.Context, h stores.Hit) error {
			n, err := s.TakeAll(ctx, []stores.Hit{h}, make([]stores.Decision, 1))
			if err != nil && n != 0 {
				return errors.New("n is 1, but the one hit is undecided")
			}
			return err
		}})
	}
	if s, ok := s.(stores.Debtor); ok {
		all = append(all, operation{"TakeOwing", func(ctx context.Context, h stores.Hit) error {
			_, err := s.TakeOwing(ctx, h, 1, long)
			return err
		}})
	}
	return all
}

// lacking reports whether err says that s has the method for the interface's sake.
func (o operation) lacking(err error) bool {
	return o.name != "Take" && errors.Is(err, errors.ErrUnsupported)
}

func invalidHits(c *check) {
	s := c.open()
	good := c.fixed(5, long)
	c.allow(s, good, 4)
	c.allow(s, good, 3)
	for _, bad := range invalidVariants(good) {
		for _, o := range operations(s) {
			if o.name == "Reset" && bad.hit.Cost < 0 {
				continue // Reset ignores the cost
			}
			if err := o.do(c.Context(), bad.hit); !errors.Is(err, stores.ErrInvalid) && !o.lacking(err) {
				c.Fatalf("%s with %s: error %v: want one that wraps ErrInvalid", o.name, bad.what, err)
			}
		}
	}
	c.fill(s, good, 3)
}

type variant struct {
	what string
	hit  stores.Hit
}

// invalidVariants returns good with one thing at a time beyond its bounds.
func invalidVariants(good stores.Hit) []variant {
	var all []variant
	add := func(what string, change func(*stores.Hit)) {
		bad := good
		change(&bad)
		all = append(all, variant{what, bad})
	}
	limit := func(what string, l stores.Limit) {
		add(what, func(h *stores.Hit) { h.Limit = l })
	}
	add("an empty key", func(h *stores.Hit) { h.Key = "" })
	add("a key of 513 bytes", func(h *stores.Hit) { h.Key = strings.Repeat("k", maxKey+1) })
	for _, c := range []string{"\x00", "\t", "\n", "\x1f", "\x7f", "\x80", "\xff", "\u00e9", "\u2028"} {
		add("a key that is not printable ASCII", func(h *stores.Hit) { h.Key += c })
	}
	add("a cost of -1", func(h *stores.Hit) { h.Cost = -1 })
	add("the least cost", func(h *stores.Hit) { h.Cost = math.MinInt })
	add("an unknown outage manner", func(h *stores.Hit) { h.Outage = stores.OutageRefuse + 1 })
	add("an unknown algorithm", func(h *stores.Hit) { h.Limit.Algorithm = stores.Leaky + 1 })
	limit("no limit", stores.Limit{})
	limit("a quota of 0", stores.FixedWindow(0, long))
	limit("a quota of -1", stores.FixedWindow(-1, long))
	limit("the least quota", stores.FixedWindow(math.MinInt, long))
	if maxQuota < math.MaxInt {
		limit("a quota of 2^53", stores.FixedWindow(maxQuota+1, long))
	}
	limit("the largest quota that an int holds on 64 bits", stores.SlidingWindow(math.MaxInt, long))
	limit("a window of 0", stores.FixedWindow(5, 0))
	limit("a window of -1 ms", stores.FixedWindow(5, -time.Millisecond))
	limit("a window just below 1 ms", stores.FixedWindow(5, time.Millisecond-1))
	limit("a window just above 10 years", stores.FixedWindow(5, maxWindow+1))
	limit("a block of -1 ms", stores.FixedWindow(5, long).BlockFor(-time.Millisecond))
	limit("a block just below 1 ms", stores.FixedWindow(5, long).BlockFor(time.Millisecond-1))
	limit("a block just above 10 years", stores.FixedWindow(5, long).BlockFor(maxWindow+1))
	limit("a sliding window that overflows", stores.SlidingWindow(math.MaxInt32, maxWindow))
	limit("a token bucket faster than one a microsecond", stores.TokenBucket(1001, time.Millisecond))
	limit("a leaky bucket faster than one a microsecond", stores.LeakyBucket(1001, time.Millisecond))
	return all
}

func boundsAreValid(c *check) {
	s := c.open()
	var letters strings.Builder
	for r := byte(0x20); r <= 0x7e; r++ {
		letters.WriteByte(r)
	}
	key := c.keys.next()
	c.allow(s, stores.Hit{Key: key + letters.String(), Limit: stores.FixedWindow(1, long)}, 0)
	c.allow(s, stores.Hit{Key: key + strings.Repeat("k", maxKey-len(key)), Limit: stores.FixedWindow(1, long)}, 0)
	c.allow(s, c.fixed(1, time.Millisecond), 0)
	c.allow(s, c.fixed(1, maxWindow), 0)
	h := c.fixed(5, long)
	for i, outage := range []stores.Outage{stores.OutageFallBack, stores.OutageAllow, stores.OutageRefuse} {
		h.Outage = outage
		c.allow(s, h, 4-i)
	}
}

// largestQuota meets arithmetic in floats, and numbers that a server writes as
// 9.0072e+15.
func largestQuota(c *check) {
	s := c.open()
	h := c.fixed(maxQuota, long)
	c.allow(s, h, maxQuota-1)
	c.allow(s, h, maxQuota-2)
	c.allow(s, costing(h, maxQuota-3), 1)
	c.refuse(s, costing(h, maxQuota), 1)
	c.allow(s, h, 0)
	c.refuse(s, h, 0)
}
