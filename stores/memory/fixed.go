package memory

import (
	"sync"
	"time"

	"github.com/sallyport/sallyport/internal/table"
	"github.com/sallyport/sallyport/stores"
)

// record is what the table keeps of a key beside the end of its window.
type record struct {
	used int64
}

// counters are the keys of one shape of fixed windows without a block.
type counters struct {
	sync.Mutex
	*table.Table[record]
}

func newCounters(maxKeys int) *counters { return &counters{Table: table.New[record](maxKeys, nil)} }

// take pays owed, then takes the hit. A window that the hit opens ends after the
// limit's Window; one that the payment opens ends after until.
//
// Readings of the clock may come in another order than the locks: a hit that is
// older than the window it meets counts in that window, so that no order of arrival
// mints a second quota.
func (c *counters) take(key string, limit stores.Limit, cost, owed int64, until time.Duration, now int64) (d stores.Decision) {
	c.count(&d, key, int64(limit.Quota), int64(limit.Window), cost, owed, int64(until), now)
	return d
}

// count is take without a copy of limit and decision.
func (c *counters) count(d *stores.Decision, key string, quota, window, cost, owed, until, now int64) {
	hash := c.Hash(key)
	c.Lock()
	defer c.Unlock()
	var used, end int64
	i := c.Find(hash)
	live := i >= 0 && now < c.Until(i)
	switch {
	case live:
		used, end = c.At(i).used, c.Until(i)
	case owed > 0 && until > 0:
		end = now + until
	default:
		end, owed = now+window, 0
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
		decide(d, quota, used, cost, allowed, 0, 0)
		return
	}
	if i < 0 {
		i = c.Insert(hash, now)
	}
	c.At(i).used = used
	c.SetUntil(i, end)
	if live {
		c.Weigh(i, used, quota, false)
	} else {
		c.Rank(i, class(used, quota))
	}
	decide(d, quota, used, cost, allowed, end-now, window)
}

func (c *counters) peek(key string, limit stores.Limit, cost, now int64) (d stores.Decision) {
	quota := int64(limit.Quota)
	hash := c.Hash(key)
	c.Lock()
	defer c.Unlock()
	i := c.Find(hash)
	if i < 0 || now >= c.Until(i) {
		decide(&d, quota, 0, cost, cost <= quota, 0, 0)
		return d
	}
	used := c.At(i).used
	decide(&d, quota, used, cost, cost <= quota-used, c.Until(i)-now, int64(limit.Window))
	return d
}

func (c *counters) refund(key string, limit stores.Limit, cost, now int64) {
	quota := int64(limit.Quota)
	hash := c.Hash(key)
	c.Lock()
	defer c.Unlock()
	i := c.Find(hash)
	if i < 0 || now >= c.Until(i) {
		return
	}
	r := c.At(i)
	r.used = max(0, min(r.used, quota)-cost)
	c.Weigh(i, r.used, quota, false)
}

func (c *counters) reset(key string) {
	hash := c.Hash(key)
	c.Lock()
	defer c.Unlock()
	if i := c.Find(hash); i >= 0 {
		c.Delete(i)
	}
}

func class(used, quota int64) int {
	if used >= quota {
		return table.Held(quota)
	}
	return table.Open(used)
}

// decide words a decision; left is the time until the window ends.
func decide(d *stores.Decision, quota, used, cost int64, allowed bool, left, window int64) {
	wait := min(ceilMillisecond(left), time.Duration(window))
	d.Allowed = allowed
	d.Source = stores.Local
	d.Remaining = int(max(0, quota-used))
	d.ResetAfter = wait
	if !allowed && cost <= quota {
		d.RetryAfter = wait
	}
}

// ceilMillisecond rounds up, so that a client that waits in whole milliseconds has
// waited long enough.
func ceilMillisecond(ns int64) time.Duration {
	const ms = int64(time.Millisecond)
	return time.Duration((ns + ms - 1) / ms * ms)
}
