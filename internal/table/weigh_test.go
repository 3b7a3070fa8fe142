package table

import (
	"strconv"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestWeigh(t *testing.T) {
	const quota = 10
	tb := New[int](10, nil)
	i := tb.Insert(tb.Hash("key"), 0)
	for _, step := range []struct {
		used int64
		held bool
		want int
	}{
		{1, false, 0}, {2, false, 1}, {1, false, 1}, {4, false, 2}, {3, false, 2}, {1, false, 0},
		{8, false, 3}, {4, false, 3}, {3, false, 1},
		{9, false, 3}, {10, false, Held(quota)}, {5, false, Held(quota)}, {4, false, 2},
		{0, true, Held(quota)}, {0, false, 0}, {11, false, Held(quota)},
	} {
		tb.Weigh(i, step.used, quota, step.held)
		require.Equal(t, step.want, int(tb.slots[i].class), "%+v", step)
		check(t, tb)
	}
	tb.Weigh(i, 1, 1, false)
	require.Equal(t, Held(1), int(tb.slots[i].class))
	tb.Weigh(i, 0, 1, false)
	require.Equal(t, 0, int(tb.slots[i].class))
}

// Keys that go up and down at the border of two classes, for two hits each time, don't
// stay fresher than a key that keeps silent.
func TestBorderKeepsNobodyFresh(t *testing.T) {
	const limit, quota = 64, 100
	tb := New[int](limit, nil)
	requests := 0
	weigh := func(key string, used ...int64) {
		hash := tb.Hash(key)
		i := tb.Find(hash)
		if i < 0 {
			i = tb.Insert(hash, 0)
		}
		tb.SetUntil(i, 1<<40)
		for _, u := range used {
			tb.Weigh(i, u, quota, false)
			requests++
		}
	}
	for i := range limit - 1 {
		weigh("junk"+strconv.Itoa(i), 32)
	}
	weigh("target", 32, 60)
	requests = 0
	for round := 0; tb.Find(tb.Hash("target")) >= 0; round++ {
		for i := range limit - 1 {
			weigh("junk"+strconv.Itoa(i), 31, 32)
		}
		weigh("new"+strconv.Itoa(round), 1)
		if requests > limit*60 {
			return
		}
	}
	require.GreaterOrEqual(t, requests, limit/8*60)
}

// What is set aside is taken from what keys may fill, and never from the key that it is
// for.
func TestAside(t *testing.T) {
	const limit = 20
	var tb *Table[int]
	tb = New(limit, func(record *int) { tb.Back(*record) })
	add := func(key string, aside int) {
		i := tb.Insert(tb.Hash(key), 0)
		tb.SetUntil(i, 1<<40)
		for range aside {
			require.True(t, tb.Aside(i, 0))
			*tb.At(i)++
		}
		require.GreaterOrEqual(t, tb.Find(tb.Hash(key)), 0)
		require.LessOrEqual(t, tb.Len(), tb.Room())
		check(t, tb)
	}
	for i := range 200 {
		add("key"+strconv.Itoa(i), i%7)
	}
	add("large", limit-1)
	require.Equal(t, 1, tb.Len())
	require.False(t, tb.Aside(tb.Find(tb.Hash("large")), 0), "nothing else can go")
	add("next", 3)
	require.Equal(t, 1, tb.Len())
	require.Equal(t, limit-3, tb.Room())
	tb.Delete(tb.Find(tb.Hash("next")))
	require.Equal(t, limit, tb.Room())
}

// Held keys give way by the share that is left for keys: else a table whose rest is set
// aside would keep held keys for ever and no newcomer.
func TestHeldShareOfTheRoom(t *testing.T) {
	const limit = 64
	var tb *Table[int]
	tb = New(limit, func(record *int) { tb.Back(*record) })
	add := func(key string, class int) {
		i := tb.Insert(tb.Hash(key), 0)
		tb.SetUntil(i, 1<<40)
		tb.Rank(i, class)
		tb.Aside(i, 0)
		*tb.At(i)++
	}
	for i := range limit / 2 {
		add("held"+strconv.Itoa(i), Held(1))
	}
	add("new1", 0)
	add("new2", 0)
	require.GreaterOrEqual(t, tb.Find(tb.Hash("new1")), 0)
	require.GreaterOrEqual(t, tb.Find(tb.Hash("new2")), 0)
}

// Several Shapes stay within one budget, and each has a table of its own.
func TestBudget(t *testing.T) {
	budget := NewBudget(3)
	made := 0
	counted := func() *int { made++; return new(int) }
	a, b, c := NewShapes[int](budget, counted), NewShapes[int](budget, counted), NewShapes[int](budget, counted)
	for shape := range 40 {
		require.Same(t, a.Of(shape), a.Of(shape))
	}
	require.Equal(t, 14, made)
	require.Same(t, a.Of(13), a.Of(39), "the last one is shared")
	require.NotSame(t, a.Of(12), a.Of(39))
	for shape := range 40 {
		b.Of(shape)
		c.Of(shape)
	}
	require.Equal(t, 16, made)
	require.Same(t, b.Of(0), b.Of(39))
	n := 0
	a.All(func(*int) { n++ })
	require.Equal(t, 14, n)
}

// What is said of the memory that a full store takes follows from these.
func TestSlotSize(t *testing.T) {
	require.Equal(t, uintptr(40), unsafe.Sizeof(slot[[1]int64]{}))
	require.Equal(t, uintptr(64), unsafe.Sizeof(slot[[4]int64]{}))
}
