package table

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// check walks the whole table and fails when it does not hang together: the lists
// partition the keys, the index finds each of them, the free chain has the rest.
func check[R any](t testing.TB, tb *Table[R]) {
	t.Helper()
	require.LessOrEqual(t, tb.keys, tb.limit)
	require.LessOrEqual(t, len(tb.slots), tb.limit)
	seen := make(map[uint32]bool)
	for c := range tb.lists {
		l := tb.lists[c]
		length, before := 0, none
		for n := l.newest; n != none; n = tb.slots[n].next {
			require.False(t, seen[n], "slot %d is in two places", n)
			seen[n] = true
			require.Equal(t, c, int(tb.slots[n].class))
			require.Equal(t, before, tb.slots[n].prev)
			require.Equal(t, int(n), tb.Find(tb.slots[n].hash))
			before = n
			length++
		}
		require.Equal(t, before, l.oldest)
		require.Equal(t, l.len > 0, tb.filled>>c&1 == 1)
		require.Equal(t, length, l.len)
	}
	require.Len(t, seen, tb.keys)
	held := 0
	for c := openClasses; c < classes; c++ {
		held += tb.lists[c].len
	}
	require.Equal(t, held, tb.HeldLen())
	for n := tb.free; n != none; n = tb.slots[n].next {
		require.False(t, seen[n], "slot %d is free and used", n)
		require.Equal(t, uint8(unused), tb.slots[n].class)
		seen[n] = true
	}
	require.Len(t, seen, len(tb.slots))
	indexed := 0
	for _, n := range tb.index {
		if n != none {
			indexed++
		}
	}
	require.Equal(t, tb.keys, indexed)
}

// model does what Table does with a map and by looking at everything.
type model struct {
	limit int
	keys  map[uint64]*entry
	tick  int
}

type entry struct {
	until   int64
	class   int
	touched int
	record  int
}

func TestAgainstModel(t *testing.T) {
	for _, limit := range []int{1, 2, 3, 15, 16, 17, 64, 65, 200} {
		t.Run(strconv.Itoa(limit), func(t *testing.T) {
			steps(t, limit, rand.New(rand.NewPCG(uint64(limit), 7)), 6000)
		})
	}
}

func FuzzAgainstModel(f *testing.F) {
	f.Add(uint8(3), uint64(1))
	f.Add(uint8(40), uint64(2))
	f.Fuzz(func(t *testing.T, limit uint8, seed uint64) {
		steps(t, int(limit)+1, rand.New(rand.NewPCG(seed, 0)), 1500)
	})
}

// steps drives table and model alike. What the table evicts is taken over by the
// model, after a check that the choice was permitted.
func steps(t *testing.T, limit int, rng *rand.Rand, count int) {
	tb := New[int](limit, nil)
	m := model{limit: limit, keys: make(map[uint64]*entry)}
	now := int64(1000)
	for step := range count {
		now += rng.Int64N(4)
		hash := rng.Uint64N(uint64(3*limit)) * 0x9e3779b97f4a7c15 >> (rng.IntN(2) * 60) // some share their home
		m.tick++
		i := tb.Find(hash)
		e, known := m.keys[hash]
		require.Equal(t, known, i >= 0, "step %d", step)
		switch {
		case known && rng.IntN(8) == 0:
			tb.Delete(i)
			delete(m.keys, hash)
		case known:
			require.Equal(t, e.record, *tb.At(i))
			require.Equal(t, e.until, tb.Until(i))
			e.class, e.touched = rng.IntN(classes), m.tick
			tb.Touch(i, e.class)
		default:
			before := tb.Stats()
			i = tb.Insert(hash, now)
			require.Zero(t, *tb.At(i), "a slot is handed out clean")
			e = &entry{until: now + rng.Int64N(int64(2*limit)+2), class: rng.IntN(classes), touched: m.tick, record: step}
			*tb.At(i) = e.record
			tb.SetUntil(i, e.until)
			tb.Touch(i, e.class)
			m.removeGone(t, tb, hash, now, before)
			m.keys[hash] = e
		}
		require.Equal(t, len(m.keys), tb.Len())
		if step%16 == 0 || limit < 20 {
			check(t, tb)
		}
	}
}

// removeGone finds what the insertion removed and asks whether it might.
func (m *model) removeGone(t *testing.T, tb *Table[int], inserted uint64, now int64, before Stats) {
	after := tb.Stats()
	evicted := after.Evicted - before.Evicted
	require.LessOrEqual(t, evicted, uint64(1))
	live := 0
	for hash, e := range m.keys {
		if tb.Find(hash) >= 0 {
			continue
		}
		delete(m.keys, hash)
		if e.until <= now {
			continue
		}
		live++
		require.Equal(t, uint64(1), evicted, "only room for a newcomer costs a live key its place")
		full := len(m.keys) + 1
		require.Equal(t, m.limit, full, "nothing live goes while there is room")
		m.requireVictim(t, e)
	}
	require.Equal(t, uint64(live), after.EvictedLive-before.EvictedLive)
}

// requireVictim knows of what each key is worth only that among those of one class the
// one that was touched longest ago goes; TestAgainstTwin knows the rest.
func (m *model) requireVictim(t *testing.T, gone *entry) {
	held, open := 0, 0
	if gone.class >= openClasses {
		held++
	}
	for _, e := range m.keys {
		if e.class >= openClasses {
			held++
		} else {
			open++
		}
		if e.class == gone.class {
			require.Greater(t, e.touched, gone.touched, "the oldest of its class goes")
		}
	}
	if gone.class >= openClasses {
		require.True(t, held >= m.limit-m.limit/8 || open == 0, "a held key goes only when held keys fill the table: %d of %d", held, m.limit)
	} else {
		require.Less(t, held, m.limit-m.limit/8)
	}
}

func TestFloodKeepsHeld(t *testing.T) {
	tb := New[int](1000, nil)
	now := int64(0)
	add := func(key string, class int) {
		i := tb.Insert(tb.Hash(key), now)
		tb.SetUntil(i, 1<<40)
		tb.Touch(i, class)
	}
	add("offender", Held(5))
	add("nearly", Open(4))
	for i := range 1_000_000 {
		now++
		add("flood"+strconv.Itoa(i), 0)
	}
	require.GreaterOrEqual(t, tb.Find(tb.Hash("offender")), 0)
	require.GreaterOrEqual(t, tb.Find(tb.Hash("nearly")), 0)
	require.Equal(t, 1000, tb.Len())
	check(t, tb)
}

// Keys of a quota of 1 that share the table are no cheap way to have one of a quota
// of 100 forgotten.
func TestCheapHeldKeysGoFirst(t *testing.T) {
	tb := New[int](1000, nil)
	add := func(key string, class int) {
		i := tb.Insert(tb.Hash(key), 0)
		tb.SetUntil(i, 1<<40)
		tb.Touch(i, class)
	}
	add("offender", Held(100))
	for i := range 100_000 {
		add("flood"+strconv.Itoa(i), Held(1))
	}
	require.GreaterOrEqual(t, tb.Find(tb.Hash("offender")), 0)
	require.LessOrEqual(t, tb.HeldLen(), 1000)
	check(t, tb)
}

func TestGrowsLazily(t *testing.T) {
	tb := New[int](50_000, nil)
	require.Empty(t, tb.slots)
	tb.Insert(tb.Hash("one"), 0)
	require.Len(t, tb.slots, firstSlots)
	require.Len(t, tb.index, 2*firstSlots)
}

func TestExpiredGoWithoutEviction(t *testing.T) {
	tb := New[int](100, nil)
	for i := range 10_000 {
		n := tb.Insert(tb.Hash(strconv.Itoa(i)), int64(i))
		tb.SetUntil(n, int64(i)+20)
	}
	require.Zero(t, tb.Stats().Evicted, "twenty live keys need no eviction in a table of a hundred")
	require.Less(t, tb.Len(), 100)
}

func TestClasses(t *testing.T) {
	for used, want := range map[int64]int{-1: 0, 0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 7: 2, 8: 3, 1 << 15: 15, 1 << 40: 15} {
		require.Equal(t, want, Open(used), "used %d", used)
		require.Equal(t, 16+want, Held(used), "quota %d", used)
	}
}

// Every record that leaves, by whichever way, is told of once.
func TestGone(t *testing.T) {
	inside := make(map[int]bool)
	tb := New(10, func(record *int) {
		require.True(t, inside[*record])
		delete(inside, *record)
	})
	for i := range 200 {
		n := tb.Insert(tb.Hash(strconv.Itoa(i)), int64(i))
		*tb.At(n), inside[i] = i, true
		tb.SetUntil(n, int64(i)+int64(i%40))
		if i%7 == 0 {
			tb.Delete(n)
		}
		require.Len(t, inside, tb.Len())
	}
	require.Positive(t, tb.Stats().Evicted)
}
