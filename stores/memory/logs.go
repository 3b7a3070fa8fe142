package memory

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/internal/table"
	"github.com/sallyport/sallyport/stores"
)

// logs are the keys of one shape of log limits, with the pages that they are written
// on. A page counts like a key, so that the table's limit bounds both together. Times
// are microseconds.
type logs struct {
	sync.Mutex
	*table.Table[queue]
	pages  pages
	latest int64 // see levels.at
}

func newLogs(maxKeys int) *logs {
	l := &logs{pages: pages{free: noPage, most: maxKeys}}
	l.Table = table.New(maxKeys, func(q *queue) { l.Back(l.pages.clear(q)) })
	return l
}

// fits returns an error for a quota that one key alone could not be counted by, if it
// used it up bit by bit: it needs the key, and pages for as many entries, of which
// the first may begin anywhere.
func fits(quota, maxKeys int) error {
	most := perPage
	if maxKeys > 2 {
		most = max(most, perPage*(maxKeys-1)-(perPage-1))
	}
	if maxKeys > 1 && quota <= most {
		return nil
	}
	if maxKeys < 2 {
		return fmt.Errorf("memory store: %w: a log in a store with MaxKeys 1: use sliding, or a larger MaxKeys", errors.ErrUnsupported)
	}
	return fmt.Errorf("memory store: %w: a log of %d: with MaxKeys %d it has time stamps for %d at most: use sliding, token or fixed, or a larger MaxKeys",
		errors.ErrUnsupported, quota, maxKeys, most)
}

// ruling is what the methods of logs need of a limit and a moment.
type ruling struct {
	quota, window, block, now int64
}

func rulingOf(limit stores.Limit) ruling {
	return ruling{quota: int64(limit.Quota), window: ceilMicrosecond(limit.Window), block: ceilMicrosecond(limit.Block)}
}

// begin is what every method does once it has the lock: it returns the slot of the
// key, or -1, without what is over.
func (l *logs) begin(hash uint64, r *ruling, reading int64) int {
	l.latest = max(l.latest, reading/int64(time.Microsecond))
	r.now = l.latest
	i := l.Find(hash)
	if i >= 0 && r.now >= l.Until(i) {
		l.Delete(i)
		return -1
	}
	if i >= 0 {
		l.Back(l.pages.expire(l.At(i), r.now-r.window))
	}
	return i
}

// put notes what became of a key.
func (l *logs) put(i int, r *ruling) {
	q := l.At(i)
	until := q.block
	if q.pages > 0 {
		until = max(until, l.pages.newest(q).stamp()+r.window)
	}
	l.SetUntil(i, until)
	l.Weigh(i, q.live, r.quota, r.now < q.block)
}

// add counts so much at a stamp, if there is room for it; see fits.
func (l *logs) add(i int, r *ruling, stamp, cost int64) bool {
	q := l.At(i)
	pages := q.wanting((cost + maxCount - 1) / maxCount)
	for n := range pages {
		if !l.Aside(i, r.now) {
			l.Back(int(n))
			return false
		}
	}
	before := q.pages
	l.pages.add(q, stamp, cost)
	l.Back(int(pages) - int(q.pages-before))
	return true
}

// take pays owed, then takes the hit.
func (l *logs) take(key string, limit stores.Limit, cost, owed int64, until time.Duration, reading int64) stores.Decision {
	r := rulingOf(limit)
	hash := l.Hash(key)
	l.Lock()
	defer l.Unlock()
	i := l.begin(hash, &r, reading)
	if i < 0 {
		if owed == 0 && cost > r.quota {
			return l.weigh(nil, &r, cost).Decision(stores.Local) // there is nothing to keep
		}
		i = l.Insert(hash, r.now)
	}
	if owed = min(owed, r.quota-l.At(i).live); owed > 0 {
		l.add(i, &r, r.now+ceilMicrosecond(until)-r.window, owed)
	}
	a := l.weigh(l.At(i), &r, cost)
	if a.Allowed {
		// Another key's pages may have to go for it, and if there is none it is refused.
		a.Allowed = l.add(i, &r, r.now, cost)
		a.Remaining = r.quota - l.At(i).live
		if a.Reset = r.window; !a.Allowed {
			a.Retry = r.window
		}
	} else if q := l.At(i); r.block > 0 && cost <= r.quota && r.now >= q.block {
		q.block = r.now + a.Retry
	}
	l.put(i, &r)
	return a.Decision(stores.Local)
}

// weigh answers a hit on a key, or on none, and changes nothing. If it allows the hit,
// Remaining and Reset are as they are before it.
func (l *logs) weigh(q *queue, r *ruling, cost int64) meter.Answer {
	var a meter.Answer
	var live, wait, blocked int64
	if q != nil {
		live, blocked = q.live, max(0, q.block-r.now)
	}
	if live > 0 {
		a.Reset = l.pages.newest(q).stamp() + r.window - r.now
	}
	if over := live + cost - r.quota; over > 0 && cost <= r.quota {
		wait = l.pages.stampOf(q, over) + r.window - r.now
	}
	a.Allowed = cost <= r.quota && wait == 0 && blocked == 0
	if blocked == 0 && (r.block == 0 || cost > r.quota || a.Allowed) {
		a.Remaining = max(0, r.quota-live)
	}
	switch {
	case a.Allowed, cost > r.quota:
	case blocked > 0:
		a.Retry = max(blocked, wait)
	default:
		a.Retry = max(r.block, wait)
	}
	a.Reset = max(a.Reset, a.Retry, blocked)
	return a
}

func (l *logs) peek(key string, limit stores.Limit, cost, reading int64) stores.Decision {
	r := rulingOf(limit)
	hash := l.Hash(key)
	l.Lock()
	defer l.Unlock()
	i := l.begin(hash, &r, reading)
	if i < 0 {
		return l.weigh(nil, &r, cost).Decision(stores.Local)
	}
	q := l.At(i)
	a := l.weigh(q, &r, cost)
	if r.now >= q.block {
		a.Remaining = max(0, r.quota-q.live)
	}
	return a.Decision(stores.Local)
}

func (l *logs) refund(key string, limit stores.Limit, cost, reading int64) {
	r := rulingOf(limit)
	hash := l.Hash(key)
	l.Lock()
	defer l.Unlock()
	i := l.begin(hash, &r, reading)
	if i < 0 {
		return
	}
	q := l.At(i)
	freed := l.pages.dropOldest(q, max(0, q.live-r.quota))
	freed += l.pages.dropNewest(q, min(cost, q.live))
	l.Back(freed)
	l.put(i, &r)
}

func (l *logs) reset(key string) {
	hash := l.Hash(key)
	l.Lock()
	defer l.Unlock()
	if i := l.Find(hash); i >= 0 {
		l.Delete(i)
	}
}
