package memory

import (
	"time"

	"github.com/sallyport/sallyport/internal/table"
	"github.com/sallyport/sallyport/stores"
)

// shape is what limits have in common that share a table.
type shape struct {
	algorithm     stores.Algorithm
	window, block time.Duration
}

func shapeOf(l stores.Limit) shape { return shape{l.Algorithm, l.Window, l.Block} }

// record is what the table keeps of a key beside the end of its window.
type record struct {
	used int64
}

// counters are the keys of one shape.
type counters struct {
	table *table.Locked[shape, record]
}

// take pays owed, then takes the hit. A window that the hit opens ends after the
// limit's Window; one that the payment opens ends after until.
//
// Readings of the clock may come in another order than the locks: a hit that is
// older than the window it meets counts in that window, so that no order of arrival
// mints a second quota.
func (c counters) take(key string, limit stores.Limit, cost, owed, until, now int64) stores.Decision {
	quota := int64(limit.Quota)
	hash := c.table.Hash(key)
	c.table.Lock()
	defer c.table.Unlock()
	var used, end int64
	i := c.table.Find(hash)
	live := i >= 0 && now < c.table.Until(i)
	switch {
	case live:
		used, end = c.table.At(i).used, c.table.Until(i)
	case owed > 0 && until > 0:
		end = now + until
	default:
		end, owed = now+int64(limit.Window), 0
	}
	if owed > 0 && used < quota {
		used += min(owed, quota-used)
	}
	allowed := cost <= quota-used
	if allowed {
		used += cost
	}
	if !live && used == 0 {
		// A cost above the quota on a key that nobody used: there is nothing to keep.
		return decide(quota, used, cost, allowed, 0, 0)
	}
	if i < 0 {
		i = c.table.Insert(hash, now)
	}
	c.table.At(i).used = used
	c.table.SetUntil(i, end)
	c.table.Rank(i, class(used, quota))
	return decide(quota, used, cost, allowed, end-now, int64(limit.Window))
}

func (c counters) peek(key string, limit stores.Limit, cost, now int64) stores.Decision {
	quota := int64(limit.Quota)
	hash := c.table.Hash(key)
	c.table.Lock()
	defer c.table.Unlock()
	i := c.table.Find(hash)
	if i < 0 || now >= c.table.Until(i) {
		return decide(quota, 0, cost, cost <= quota, 0, 0)
	}
	used := c.table.At(i).used
	return decide(quota, used, cost, cost <= quota-used, c.table.Until(i)-now, int64(limit.Window))
}

func (c counters) refund(key string, limit stores.Limit, cost, now int64) {
	quota := int64(limit.Quota)
	hash := c.table.Hash(key)
	c.table.Lock()
	defer c.table.Unlock()
	i := c.table.Find(hash)
	if i < 0 || now >= c.table.Until(i) {
		return
	}
	r := c.table.At(i)
	r.used = max(0, min(r.used, quota)-cost)
	c.table.Rank(i, class(r.used, quota))
}

func (c counters) reset(key string) {
	hash := c.table.Hash(key)
	c.table.Lock()
	defer c.table.Unlock()
	if i := c.table.Find(hash); i >= 0 {
		c.table.Delete(i)
	}
}

func class(used, quota int64) int {
	if used >= quota {
		return table.Held(quota)
	}
	return table.Open(used)
}

// decide words a decision; left is the time until the window ends.
func decide(quota, used, cost int64, allowed bool, left, window int64) stores.Decision {
	wait := min(ceilMillisecond(left), time.Duration(window))
	d := stores.Decision{
		Allowed:    allowed,
		Source:     stores.Local,
		Remaining:  int(max(0, quota-used)),
		ResetAfter: wait,
	}
	if !allowed && cost <= quota {
		d.RetryAfter = wait
	}
	return d
}

// ceilMillisecond rounds up, so that a client that waits in whole milliseconds has
// waited long enough.
func ceilMillisecond(ns int64) time.Duration {
	const ms = int64(time.Millisecond)
	return time.Duration((ns + ms - 1) / ms * ms)
}
