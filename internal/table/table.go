// Package table is the bounded table of counters that the memory store, the
// failover and the shared stores' hints are built on.
//
// It holds at most a fixed number of keys, finds, inserts and evicts in constant
// time, starts no goroutine, and keeps no pointer in its slots, so that the garbage
// collector has nothing to walk. Keys are not kept: a slot carries a 64-bit hash of
// its key under a seed that only this process knows, so that nobody outside can
// look for two keys that meet. Among 50,000 keys the chance that any two do is
// about 7e-11.
//
// What to forget when the table is full is the heart of it. A plain LRU forgets
// whoever kept silent, so that an offender is forgiven as soon as he has flooded it
// with as many other keys as it holds. Here a key is put into a class by how much
// of its quota it has used, and forgotten in the order of what it cost to get
// there; see [Table.Insert].
package table

import "hash/maphash"

const (
	openClasses = 16
	heldClasses = 16
	classes     = openClasses + heldClasses
	unused      = classes // stands for the class in a slot without a key

	firstSlots = 64
	none       = ^uint32(0)
)

// Table maps hashes of keys to records of type R, which must not hold pointers. It
// is not safe for concurrent use: its owner has the lock.
type Table[R any] struct {
	index []uint32 // open addressing: number of a slot, or none
	mask  uint32   // len(index) - 1
	slots []slot[R]
	limit int    // the cap on keys
	free  uint32 // head of the chain of unused slots, linked by next
	hand  uint32
	keys  int
	held  int // keys in held classes
	aside int // of the limit, what is not for keys; see Aside
	lists [classes]list
	// filled has a bit for each list that is not empty.
	filled uint32
	low    [2]uint32 // what the last key that was evicted was worth, open and held
	stats  Stats
	seed   maphash.Seed
	gone   func(*R) // may be nil
}

type slot[R any] struct {
	hash       uint64
	until      int64 // live while now < until
	prev, next uint32
	age        uint32 // low, when the slot came to its place in its class
	class      uint8
	record     R
}

// list is a queue of slots by the time at which they came to their place, and so by age.
type list struct {
	newest, oldest uint32
	len            int
}

// Stats counts what a table had to forget.
type Stats struct {
	Evicted     uint64 // keys removed to make room
	EvictedLive uint64 // those of them whose time was not over
	EvictedHeld uint64 // those of the live ones whose quota was used up
}

// Add adds the counts of another table.
func (s *Stats) Add(other Stats) {
	s.Evicted += other.Evicted
	s.EvictedLive += other.EvictedLive
	s.EvictedHeld += other.EvictedHeld
}

// New returns an empty table for at most limit keys, 1 to 2^30. It allocates for
// the first few keys only and grows as they come. If gone is not nil it is called
// with each record that is deleted, swept or evicted, under the owner's lock.
func New[R any](limit int, gone func(*R)) *Table[R] {
	t := &Table[R]{limit: max(1, min(limit, 1<<30)), seed: maphash.MakeSeed(), free: none, gone: gone}
	for c := range t.lists {
		t.lists[c] = list{newest: none, oldest: none}
	}
	return t
}

// Len returns the number of keys in the table, expired ones that were not met yet
// included. It never exceeds the limit.
func (t *Table[R]) Len() int { return t.keys }

// HeldLen returns the number of keys whose quota is used up.
func (t *Table[R]) HeldLen() int { return t.held }

// Stats returns the counters.
func (t *Table[R]) Stats() Stats { return t.stats }

// Hash returns the hash under which the table knows key. It may be called without
// the lock.
func (t *Table[R]) Hash(key string) uint64 { return maphash.String(t.seed, key) }

// Find returns the number of the hash's slot, or -1. The slot may have expired.
func (t *Table[R]) Find(hash uint64) int {
	if len(t.index) == 0 {
		return -1
	}
	for at := uint32(hash) & t.mask; ; at = (at + 1) & t.mask {
		i := t.index[at]
		if i == none {
			return -1
		}
		if t.slots[i].hash == hash {
			return int(i)
		}
	}
}

// At returns the record in a slot that Find or Insert gave. It stays valid until
// the next Insert.
func (t *Table[R]) At(i int) *R { return &t.slots[i].record }

// Until returns the time at which the slot expires.
func (t *Table[R]) Until(i int) int64 { return t.slots[i].until }

// SetUntil sets the time at which the slot expires: from then on it is free to be
// taken for another key.
func (t *Table[R]) SetUntil(i int, until int64) { t.slots[i].until = until }

// Rank puts the slot into a class that Open or Held gave, as the newest. In an open
// class that it is in already it stays where it is: else one cheap hit would be worth as
// much as all those that it took to get there, and keep what an attacker fills the
// table with fresher than what he wants forgotten. In a held class every hit makes it
// the newest, refused ones first of all: an offender who goes on knocking is not
// forgotten, whatever else is used up meanwhile.
func (t *Table[R]) Rank(i, class int) {
	if int(t.slots[i].class) != class || class >= openClasses {
		t.Touch(i, class)
	}
}

// Touch makes the slot the newest of a class that Open or Held gave, whether it is
// in it or not: for records that are worth something only while they are in use.
func (t *Table[R]) Touch(i, class int) {
	n := uint32(i)
	l := &t.lists[class]
	s := &t.slots[n]
	s.age = t.low[side(class)]
	if l.newest == n {
		return
	}
	t.unlink(n)
	s.class = uint8(class)
	s.prev, s.next = none, l.newest
	if l.newest != none {
		t.slots[l.newest].prev = n
	} else {
		l.oldest = n
	}
	l.newest = n
	l.len++
	t.filled |= 1 << class
	if class >= openClasses {
		t.held++
	}
}

// side returns 0 for an open class and 1 for a held one.
func side(class int) int { return class / openClasses }

func (t *Table[R]) unlink(n uint32) {
	s := &t.slots[n]
	l := &t.lists[s.class]
	if s.prev != none {
		t.slots[s.prev].next = s.next
	} else {
		l.newest = s.next
	}
	if s.next != none {
		t.slots[s.next].prev = s.prev
	} else {
		l.oldest = s.prev
	}
	if l.len--; l.len == 0 {
		t.filled &^= 1 << s.class
	}
	if s.class >= openClasses {
		t.held--
	}
}

// Delete forgets the key in a slot.
func (t *Table[R]) Delete(i int) {
	n := uint32(i)
	if t.gone != nil {
		t.gone(&t.slots[n].record)
	}
	t.unindex(n)
	t.unlink(n)
	t.slots[n] = slot[R]{class: unused, prev: none, next: t.free}
	t.free = n
	t.keys--
}

// unindex takes a slot's entry out of the index and closes the gap by moving back
// what stood behind it, so that no tombstones pile up under a flood.
func (t *Table[R]) unindex(n uint32) {
	gap := uint32(t.slots[n].hash) & t.mask
	for t.index[gap] != n {
		gap = (gap + 1) & t.mask
	}
	for at := gap; ; {
		at = (at + 1) & t.mask
		i := t.index[at]
		if i == none {
			break
		}
		home := uint32(t.slots[i].hash) & t.mask
		// The entry may move into the gap unless its home lies behind the gap.
		if (at-home)&t.mask >= (at-gap)&t.mask {
			t.index[gap] = i
			gap = at
		}
	}
	t.index[gap] = none
}
