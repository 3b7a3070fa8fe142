package table

import "math/bits"

// Open returns the class of a key that has used this much of its quota, and not all:
// floor(log2 used), at most 15.
func Open(used int64) int { return min(log2(used), openClasses-1) }

// Held returns the class of a key that has used up its quota. Keys of different
// quotas may share a table; the classes keep those apart that were cheap to fill, or
// an attacker would have keys of a large quota forgotten at the price of small ones.
func Held(quota int64) int { return openClasses + min(log2(quota), heldClasses-1) }

func log2(n int64) int {
	if n < 2 {
		return 0
	}
	return bits.Len64(uint64(n)) - 1
}

// Insert makes a slot for a hash that Find did not find, as the newest of class 0
// with a zero record that expired at now: the caller sets record, time and class.
//
// It also looks at the next two slots of a hand that goes round, and frees those
// that have expired; so expired keys go without a sweep, two steps at a time. If
// the table is full nevertheless, one key is evicted:
//
//   - one that has expired, if one of the oldest has;
//   - else the oldest of the lowest held class, if held keys fill 7/8 of the table;
//   - else the oldest of the lowest class that has any, except that class 0 keeps
//     1/16 of the table, so that newcomers live long enough to climb;
//   - else the oldest of the lowest held class.
//
// To have a held key forgotten an attacker must therefore use up as many quotas of
// that size as fill 7/8 of the table, and to have one with u used forgotten he must bring nearly
// all other keys to u/2 or more.
func (t *Table[R]) Insert(hash uint64, now int64) int {
	t.sweep(now)
	if t.free == none {
		if len(t.slots) < t.limit {
			t.grow()
		} else {
			t.evict(now)
		}
	}
	n := t.free
	t.free = t.slots[n].next
	t.slots[n] = slot[R]{hash: hash, until: now, class: 0, prev: none, next: t.lists[0].newest}
	if l := &t.lists[0]; l.newest != none {
		t.slots[l.newest].prev = n
		l.newest = n
		l.len++
	} else {
		*l = list{newest: n, oldest: n, len: 1}
	}
	at := uint32(hash) & t.mask
	for t.index[at] != none {
		at = (at + 1) & t.mask
	}
	t.index[at] = n
	t.keys++
	return int(n)
}

// sweep moves the hand on by two slots.
func (t *Table[R]) sweep(now int64) {
	for range min(2, len(t.slots)) {
		if int(t.hand) >= len(t.slots) {
			t.hand = 0
		}
		if s := &t.slots[t.hand]; s.class != unused && s.until <= now {
			t.Delete(int(t.hand))
		}
		t.hand++
	}
}

func (t *Table[R]) evict(now int64) {
	n := t.victim(now)
	s := &t.slots[n]
	t.stats.Evicted++
	if now < s.until {
		t.stats.EvictedLive++
		if s.class >= openClasses {
			t.stats.EvictedHeld++
		}
	}
	t.Delete(int(n))
}

// victim picks the slot to be evicted from a full table.
func (t *Table[R]) victim(now int64) uint32 {
	lowest := t.lowestOpen()
	held := t.lowestHeld()
	if held != none && t.slots[held].until <= now {
		return held
	}
	if lowest == none {
		return held
	}
	if t.slots[lowest].until <= now {
		return lowest
	}
	if held != none && t.held >= t.limit-t.limit/8 {
		return held
	}
	return lowest
}

// lowestOpen returns the oldest slot of the lowest open class, where class 0 counts
// only with what it has beyond its reserve, unless there is no other.
func (t *Table[R]) lowestOpen() uint32 {
	if t.lists[0].len > t.limit/16 {
		return t.lists[0].oldest
	}
	for c := 1; c < openClasses; c++ {
		if t.lists[c].len > 0 {
			return t.lists[c].oldest
		}
	}
	return t.lists[0].oldest
}

func (t *Table[R]) lowestHeld() uint32 {
	for c := openClasses; c < classes; c++ {
		if t.lists[c].len > 0 {
			return t.lists[c].oldest
		}
	}
	return none
}

// grow doubles the slots, up to the limit, and keeps the index at most half full.
func (t *Table[R]) grow() {
	old := len(t.slots)
	size := min(max(firstSlots, 2*old), t.limit)
	slots := make([]slot[R], size)
	copy(slots, t.slots)
	t.slots = slots
	for n := size - 1; n >= old; n-- {
		t.slots[n] = slot[R]{class: unused, prev: none, next: t.free}
		t.free = uint32(n)
	}
	length := 1 << bits.Len(uint(2*size-1))
	if length == len(t.index) {
		return
	}
	t.index = make([]uint32, length)
	t.mask = uint32(length - 1)
	for i := range t.index {
		t.index[i] = none
	}
	for n := range t.slots {
		if t.slots[n].class == unused {
			continue
		}
		at := uint32(t.slots[n].hash) & t.mask
		for t.index[at] != none {
			at = (at + 1) & t.mask
		}
		t.index[at] = uint32(n)
	}
}
