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
//   - one that has expired, if the oldest of a class has;
//   - else the held key that is worth least, if held keys fill 7/8 of the table;
//   - else the open key that is worth least;
//   - else, with no open key, the held one that is worth least.
//
// A key is worth 2^class, about half of what was used up to get there, on top of what
// the last key was worth that was evicted before it came there (the GreedyDual rule of
// N. Young, "The k-server dual and loose competitiveness for paging", 1994). So what was
// used up to fill the table counts once: an attacker who has brought all other keys
// to four used hits has one with three forgotten, and then his own ones are
// worth no more than the next. Only where most keys are in the same class as the one that
// goes nothing is added: there a flood of cheap keys replaces itself, and the others
// are worth more than it for ever.
//
// To have a held key forgotten an attacker must therefore use up as many quotas of
// that size as fill 7/8 of the table, and to have one with u used forgotten he must bring
// nearly all other keys to u/2 or more. Doing that again and again costs him at least
// an eighth of the open keys for each hit that is forgotten. Held keys he can keep
// fresh by a refused hit on each; then every held key of somebody who keeps silent
// costs him as many requests as there are others, as in a plain LRU, but not before
// he has paid for filling the table.
func (t *Table[R]) Insert(hash uint64, now int64) int {
	t.sweep(now)
	if t.keys >= t.Room() {
		t.evict(now, none)
	}
	if t.free == none {
		t.grow()
	}
	n := t.free
	t.free = t.slots[n].next
	t.slots[n] = slot[R]{hash: hash, until: now, class: 0, age: t.low[0], prev: none, next: t.lists[0].newest}
	if l := &t.lists[0]; l.newest != none {
		t.slots[l.newest].prev = n
		l.newest = n
		l.len++
	} else {
		*l = list{newest: n, oldest: n, len: 1}
		t.filled |= 1
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

func (t *Table[R]) evict(now int64, spared uint32) {
	n := t.victim(now, spared)
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

// victim picks the slot to be evicted from a full table, any but the spared one.
func (t *Table[R]) victim(now int64, spared uint32) uint32 {
	open, expired := t.least(0, now, spared)
	if expired {
		return open
	}
	held, expired := t.least(openClasses, now, spared)
	if expired {
		return held
	}
	n := open
	if room := t.Room(); open == none || held != none && t.held >= room-room/8 {
		n = held
	}
	class := int(t.slots[n].class)
	all := t.keys - t.held
	if class >= openClasses {
		all = t.held
	}
	if t.lists[class].len <= all/2 {
		t.low[side(class)] = t.worth(n)
	}
	return n
}

// least returns the slot that is worth least of the sixteen classes from first on, the
// one of the lower class where two are worth the same, or none. If the oldest of a
// class has expired it returns that. The spared slot counts as if it were not there.
func (t *Table[R]) least(first int, now int64, spared uint32) (n uint32, expired bool) {
	n = none
	for filled := t.filled >> first & (1<<openClasses - 1); filled != 0; filled &= filled - 1 {
		oldest := t.lists[first+bits.TrailingZeros32(filled)].oldest
		if oldest == spared {
			if oldest = t.slots[oldest].prev; oldest == none {
				continue
			}
		}
		if t.slots[oldest].until <= now {
			return oldest, true
		}
		// The numbers go round: of those in a table no two are further apart than the
		// highest class is worth.
		if n == none || int32(t.worth(oldest)-t.worth(n)) < 0 {
			n = oldest
		}
	}
	return n, false
}

func (t *Table[R]) worth(n uint32) uint32 {
	s := &t.slots[n]
	return s.age + 1<<(s.class%openClasses)
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
