package failover

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/internal/table"
	"github.com/sallyport/sallyport/stores"
)

const (
	defaultMaxKeys = 50_000

	// holdLeast is for how long a refusal is remembered at least, and half of its
	// RetryAfter at most. So a client that hammers costs one call after half the
	// time, one after half of the rest, and so on: about log2(window/10s)+1 in a
	// window. And what another instance does about the key (a Reset) is seen here.
	holdLeast = 10 * time.Second

	stripes = 4096
)

// refusals remembers what the shared store refused, so that it need not be asked
// again before its answer can change.
type refusals struct {
	mu    sync.Mutex
	table *table.Table[refusal] // by key and quota: a client who can choose among plans has each of them remembered

	// changed counts, for each group of keys, what was done here that may make a
	// refused key allowed again. An answer whose call began at another count is not
	// remembered, and one from before holds no more. Groups are chosen by a seeded hash:
	// nobody can aim at one.
	changed [stripes]atomic.Uint64
}

// place is the hash of the record of a key, by its hash, for a quota.
func place(hash uint64, quota int) uint64 {
	h := hash ^ uint64(quota)*0x9e3779b97f4a7c15
	return h ^ h>>29
}

// mark is a reading of changed: refunds in the lower half, resets in the upper.
type mark uint64

const oneReset = 1 << 32

// crossedReset tells whether a Reset lies between two marks.
func (m mark) crossedReset(later mark) bool { return m/oneReset != later/oneReset }

// refusal is what was answered about a key. It holds, while nothing changed since the
// mark, for a limit of this quota and block, for hits of this cost or more; what is left of the quota may suffice for
// cheaper ones.
type refusal struct {
	mark       mark
	at         int64 // when it was answered
	end, reset int64 // when a hit of this cost passes; when the whole quota is back
	block      time.Duration
	quota      int
	cost       int
	remaining  int

	// costly is the largest cost that was refused beside, which passes at late.
	costly int
	late   int64
}

// passes is when a hit of this cost passes, or later. It is not known if the hit costs
// far more than any that was refused: the shared store is asked then. (Each time by twice
// as much: nobody makes the store be asked for ever by asking for a little more.)
//
// In a fixed window all costs pass at once, when it ends. A bucket that has room for
// one cost has room for the next when so much more has drained. What a window or log
// of events frees when only the shared store knows; at the latest all is back at reset.
func (r *refusal) passes(limit stores.Limit, cost int) (at int64, known bool) {
	switch {
	case cost == r.cost || limit.Algorithm == stores.Fixed:
		return r.end, true
	case limit.Algorithm == stores.Token || limit.Algorithm == stores.Leaky:
		each := meter.Of(limit).Emission * nanos
		// During a block the bucket drains; it was not more than full.
		return min(r.end+int64(cost-r.cost)*each, max(r.end, r.at+int64(cost)*each)), true
	case cost <= r.costly:
		return r.late, true
	case cost < 2*max(r.cost, r.costly):
		return max(r.reset, r.end), true
	}
	return 0, false
}

func newRefusals(maxKeys int) *refusals {
	if maxKeys == 0 {
		maxKeys = defaultMaxKeys
	}
	return &refusals{table: table.New[refusal](maxKeys, nil)}
}

// recall answers the hit from memory if a refusal of it is sure to hold still. The
// record is touched, so that a key that is in use stays.
func (r *refusals) recall(hit *stores.Hit, now int64) (stores.Decision, bool) {
	hash := r.table.Hash(hit.Key)
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.table.Find(place(hash, hit.Limit.Quota))
	if i < 0 || now >= r.table.Until(i) {
		return stores.Decision{}, false
	}
	rec := r.table.At(i)
	if rec.mark != mark(r.changed[hash%stripes].Load()) {
		return stores.Decision{}, false
	}
	if rec.quota != hit.Limit.Quota || rec.block != hit.Limit.Block || max(1, hit.Cost) < rec.cost {
		return stores.Decision{}, false
	}
	passes, known := rec.passes(hit.Limit, max(1, hit.Cost))
	if !known {
		return stores.Decision{}, false
	}
	r.table.Touch(i, 0)
	return stores.Decision{
		Source:     stores.Remembered,
		Remaining:  rec.remaining,
		RetryAfter: time.Duration(passes - now),
		ResetAfter: time.Duration(max(rec.reset, passes) - now),
	}, true
}

// mark is to be taken before a call whose answer may be remembered.
func (r *refusals) mark(hit *stores.Hit) mark {
	return mark(r.changed[r.table.Hash(hit.Key)%stripes].Load())
}

// remember keeps the refusal d of a call that began at this mark and was sent when
// given. The store spoke somewhere between that and now, and may have rounded up to a
// millisecond, so by so much d.RetryAfter may be over earlier than it is told from now
// on: from then on the store is asked again.
func (r *refusals) remember(hit *stores.Hit, d *stores.Decision, began mark, sent, now int64) {
	hash := r.table.Hash(hit.Key)
	until := min(sent+int64(d.RetryAfter-time.Millisecond), now+int64(max(holdLeast, d.RetryAfter/2)))
	if until <= now {
		return
	}
	rec := refusal{
		mark:      began,
		at:        now,
		end:       now + int64(d.RetryAfter),
		reset:     now + int64(d.ResetAfter),
		block:     hit.Limit.Block,
		quota:     hit.Limit.Quota,
		cost:      max(1, hit.Cost),
		remaining: d.Remaining,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if mark(r.changed[hash%stripes].Load()) != began {
		return
	}
	at := place(hash, rec.quota)
	i := r.table.Find(at)
	if i < 0 {
		i = r.table.Insert(at, now)
	} else if old := r.table.At(i); now < r.table.Until(i) && old.mark == began && old.quota == rec.quota && old.block == rec.block && old.cost < rec.cost {
		// A smaller hit was refused already.
		if rec.cost > old.costly {
			old.costly, old.late = rec.cost, rec.end
		}
		r.table.Touch(i, 0)
		return
	}
	*r.table.At(i) = rec
	r.table.SetUntil(i, until)
	r.table.Touch(i, 0)
}

// outdate forgets what was remembered of costlier hits when a cheaper one was let through:
// in a bucket, or where windows slide, they now wait for longer than was said.
func (r *refusals) outdate(hit *stores.Hit) {
	at := place(r.table.Hash(hit.Key), hit.Limit.Quota)
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.table.Find(at); i >= 0 {
		r.table.Delete(i)
	}
}

// drop forgets the key's refusals, whatever their quota, and any that is on its way, for
// a Refund. (Those of the few keys of its group are forgotten with it, and asked for anew.)
func (r *refusals) drop(hit *stores.Hit) { r.change(hit, 1) }

// reset does so for a Reset.
func (r *refusals) reset(hit *stores.Hit) { r.change(hit, oneReset) }

func (r *refusals) change(hit *stores.Hit, by uint64) {
	r.changed[r.table.Hash(hit.Key)%stripes].Add(by)
}
