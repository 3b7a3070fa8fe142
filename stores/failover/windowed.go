package failover

import (
	"time"

	"github.com/sallyport/sallyport/internal/table"
	"github.com/sallyport/sallyport/stores"
)

// record is a key in its window, which ends with the slot. All numbers are in units
// of the quota, opened apart.
type record struct {
	opened  int64 // process time at which the window was first known of
	used    int64 // at least mine, and what the shared store said
	mine    int64 // let through by this instance, whoever decided
	granted int64 // of mine, what was let through without the shared store
	owed    int64 // of granted, what the shared store has still to be told
	pending int64 // asked of the shared store and not answered yet
	paying  int64 // what was owed and is on its way with a hit

	// doubtful: of some of mine the shared store may not know, and it will not be told,
	// since it may know already.
	doubtful bool

	// told: the window's end is that of the shared store's window.
	told bool
}

// windowed is a hit on a fixed window without a block, with the place of its record.
// Its methods take the lock.
type windowed struct {
	*fallback
	table  *table.Locked[shape, record]
	hash   uint64
	quota  int64
	cost   int64
	window int64
	brought
}

// live returns the record of the key's window, or nil.
func (k *windowed) live(now int64) (*record, int) {
	i := k.table.Find(k.hash)
	if i < 0 || now >= k.table.Until(i) {
		return nil, i
	}
	return k.table.At(i), i
}

// open returns the record of the key's window, a new one if there was none. What is
// on its way to the shared store belongs to no window yet and is kept.
func (k *windowed) open(now int64) (*record, int) {
	r, i := k.live(now)
	if r != nil {
		return r, i
	}
	if i < 0 {
		i = k.table.Insert(k.hash, now)
	}
	r = k.table.At(i)
	k.clear(r, now)
	k.table.SetUntil(i, now+k.window)
	return r, i
}

// clear empties a record for another window. A debt ends with the window in which
// too much was let through.
func (k *windowed) clear(r *record, now int64) {
	k.setOwed(r, 0)
	*r = record{opened: now, pending: r.pending, paying: r.paying}
}

func (k *windowed) touch(r *record, i int) {
	if r.used >= k.quota {
		k.table.Rank(i, table.Held(k.quota))
		return
	}
	k.table.Rank(i, table.Open(r.used))
}

// answered takes back a hit that the shared store answered, after an exchange that
// took as long as given. What it told is taken over: the use, and the window's end if
// that is certain, which may be off by the time that the exchange took.
//
// Of an answer that crossed a Reset nobody knows on which side of it the hit was
// counted. If it was let through it is held for the later side, and no more is learned.
func (k *windowed) answered(d debt, told *stores.Decision, certain, crossed bool, now, took int64) {
	k.table.Lock()
	defer k.table.Unlock()
	k.back(d)
	k.cropped(d, now)
	crossed = crossed || told.ResetAfter <= 0
	if !told.Allowed && (crossed || !certain) {
		return
	}
	end := now + int64(told.ResetAfter)
	if r, _ := k.live(now); r != nil && !crossed && end-took <= r.opened {
		// The window that it was counted in was over when this one opened.
		return
	}
	r, i := k.open(now)
	if certain && !crossed {
		if r.told && end > k.table.Until(i)+took+int64(2*time.Millisecond) {
			// It is another window than the one told of before: somebody reset the key, or
			// the shared store forgot it.
			k.clear(r, now)
		}
		r.told = true
		k.table.SetUntil(i, end)
	}
	if told.Allowed {
		r.mine += k.cost
	}
	r.used = max(r.used, r.mine)
	if !crossed {
		// What is owed the shared store did not know of when it spoke.
		known := k.quota - int64(told.Remaining) + r.owed + r.paying
		r.used = max(r.used, min(k.quota, known))
	}
	k.touch(r, i)
}

// take decides about a hit without the shared store. If the shared store can be told
// of it later, what is let through is owed.
func (k *windowed) take(now int64, owes bool) stores.Decision {
	k.table.Lock()
	defer k.table.Unlock()
	k.own(now)
	if r, _ := k.live(now); r == nil && !k.decide(&record{}, 0).Allowed {
		// A hit that is refused opens no window.
		return k.decide(&record{}, k.window)
	}
	r, i := k.open(now)
	d := k.decide(r, k.table.Until(i)-now)
	if d.Allowed {
		r.used += k.cost
		r.mine += k.cost
		r.granted += k.cost
		d.Remaining -= int(k.cost)
		if owes {
			k.setOwed(r, r.owed+k.cost)
		} else {
			r.doubtful = true
		}
	}
	k.touch(r, i)
	return d
}

func (k *windowed) peek(now int64) stores.Decision {
	k.table.Lock()
	defer k.table.Unlock()
	r, i := k.live(now)
	if r == nil {
		return k.decide(&record{}, 0)
	}
	return k.decide(r, k.table.Until(i)-now)
}

// decide says what the fallback makes of the hit: allowed while there is room in
// the quota, with what is on its way to the shared store taken as counted there, and
// in this instance's share of it. Remaining is before the hit.
func (k *windowed) decide(r *record, left int64) stores.Decision {
	share := max(1, k.quota/k.instances)
	room := min(k.quota-r.used-r.pending, share-r.granted)
	wait := k.wait(left)
	d := stores.Decision{Allowed: k.cost <= room, Remaining: int(max(0, room)), ResetAfter: wait}
	if !d.Allowed {
		d.RetryAfter = wait
	}
	return d
}

// wait words what is left of a window: in whole milliseconds, rounded up, and no more
// than the window.
func (k *windowed) wait(left int64) time.Duration {
	wait := time.Duration(left+int64(time.Millisecond)-1) / time.Millisecond * time.Millisecond
	return min(wait, time.Duration(k.window))
}

// refund gives back a hit that the fallback or the shared store counted.
func (k *windowed) refund(local bool, now int64) {
	k.table.Lock()
	defer k.table.Unlock()
	r, i := k.live(now)
	if r == nil {
		return
	}
	r.used, r.mine = max(0, r.used-k.cost), max(0, r.mine-k.cost)
	if local {
		r.granted = max(0, r.granted-k.cost)
		k.setOwed(r, max(0, r.owed-k.cost))
	}
	k.touch(r, i)
}

// reset empties the record. What is on its way to the shared store still is, so the
// slot stays, and goes like any that has expired.
func (k *windowed) reset(now int64) {
	k.table.Lock()
	defer k.table.Unlock()
	if i := k.table.Find(k.hash); i >= 0 {
		r := k.table.At(i)
		k.clear(r, now)
		k.table.SetUntil(i, now)
		k.touch(r, i)
	}
}

// unlearn forgets what was told of the key, and keeps what was let through here.
func (k *windowed) unlearn(now int64) {
	k.table.Lock()
	defer k.table.Unlock()
	if r, i := k.live(now); r != nil {
		r.used, r.told = r.mine, false
		k.touch(r, i)
	}
}
