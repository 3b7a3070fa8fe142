package table

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// twin evicts as a Table of live keys does, by looking at all of them.
type twin struct {
	limit int
	low   [2]uint64
	tick  int
	keys  map[uint64]*ranked
}

type ranked struct {
	class, at int
	age       uint64
}

func (r *ranked) worth() uint64 { return r.age + 1<<(r.class%openClasses) }

func (w *twin) put(r *ranked, class int) {
	w.tick++
	r.class, r.at, r.age = class, w.tick, w.low[class/openClasses]
}

// least returns the key of a side that is worth least; among equals the one of the
// lower class, and there the one that came first.
func (w *twin) least(side int) (hash uint64, all int) {
	var least *ranked
	for h, r := range w.keys {
		if r.class/openClasses != side {
			continue
		}
		all++
		if least == nil || r.worth() < least.worth() ||
			r.worth() == least.worth() && (r.class < least.class || r.class == least.class && r.at < least.at) {
			hash, least = h, r
		}
	}
	return hash, all
}

func (w *twin) evict() uint64 {
	hash, open := w.least(0)
	other, held := w.least(1)
	side, all := 0, open
	if open == 0 || held >= w.limit-w.limit/8 {
		hash, side, all = other, 1, held
	}
	gone, same := w.keys[hash], 0
	for _, r := range w.keys {
		if r.class == gone.class {
			same++
		}
	}
	if same <= all/2 {
		w.low[side] = gone.worth()
	}
	delete(w.keys, hash)
	return hash
}

// A full table of live keys evicts the very key that one finds by looking at all of
// them, for every small cap, and across the point where the numbers go round.
func TestAgainstTwin(t *testing.T) {
	for _, start := range []uint64{0, math.MaxUint32 - 500} {
		for _, limit := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 33, 100} {
			rng := rand.New(rand.NewPCG(start, uint64(limit)))
			tb := New[int](limit, nil)
			w := twin{limit: limit, low: [2]uint64{start, start}, keys: make(map[uint64]*ranked)}
			tb.low = [2]uint32{uint32(start), uint32(start)}
			highest := 2 + rng.IntN(8)
			for step := range 3000 {
				hash := rng.Uint64N(uint64(2*limit + 1))
				r, i := w.keys[hash], tb.Find(hash)
				require.Equal(t, r != nil, i >= 0)
				class := rng.IntN(highest) + rng.IntN(2)*openClasses*rng.IntN(2)
				switch {
				case r == nil:
					if len(w.keys) == limit {
						gone := w.evict()
						i = tb.Insert(hash, 1)
						require.Negative(t, tb.Find(gone), "cap %d step %d", limit, step)
					} else {
						i = tb.Insert(hash, 1)
					}
					tb.SetUntil(i, 2)
					r = new(ranked)
					w.put(r, 0)
					w.keys[hash] = r
				case rng.IntN(20) == 0:
					tb.Delete(i)
					delete(w.keys, hash)
					continue
				case rng.IntN(6) == 0:
					tb.Touch(i, class)
					w.put(r, class)
					continue
				}
				tb.Rank(i, class)
				if r.class != class || class >= openClasses {
					w.put(r, class)
				}
			}
			require.Equal(t, len(w.keys), tb.Len())
			for side, low := range w.low {
				require.Equal(t, uint32(low), tb.low[side])
			}
			check(t, tb)
		}
	}
}

// What has expired makes room before anybody who has not, whatever it was worth.
func TestExpiredHeadsGoFirst(t *testing.T) {
	const limit = 64
	for _, class := range []int{0, 3, Open(1 << 15), Held(1), Held(1 << 15)} {
		tb := New[int](limit, nil)
		add := func(name string, until int64, class int) {
			i := tb.Insert(tb.Hash(name), 1)
			tb.SetUntil(i, until)
			tb.Rank(i, class)
		}
		add("expires", 2, class)
		for i := range limit - 1 {
			add("live"+strconv.Itoa(i), 1000, 1)
		}
		tb.hand = limit / 2 // away from it
		i := tb.Insert(tb.Hash("new"), 3)
		tb.SetUntil(i, 1000)
		require.Negative(t, tb.Find(tb.Hash("expires")), "class %d", class)
		require.Zero(t, tb.Stats().EvictedLive)
		check(t, tb)
	}
}
