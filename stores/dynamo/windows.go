package dynamo

import (
	"hash/maphash"
	"sync"
)

// maxWindows is how many keys an instance knows the window's end of.
const maxWindows = 50_000

// windows remembers the last end seen for a key. It chooses which call is tried
// first and nothing else: to lose an entry, or to mix two keys up, costs one call.
//
// It holds two generations. When the younger is full the older is dropped whole and
// they change places, so that a flood of keys costs O(1) a key, and one in use stays.
type windows struct {
	seed maphash.Seed
	half int // entries in one generation, at most

	mu         sync.Mutex
	young, old map[uint64]int64 // no pointers, so that the collector has nothing to walk
}

func newWindows(limit int) windows {
	return windows{seed: maphash.MakeSeed(), half: limit / 2, young: make(map[uint64]int64), old: make(map[uint64]int64)}
}

// end returns the last end seen for key in milliseconds, 0 if none is known.
func (w *windows) end(key string) int64 {
	h := maphash.String(w.seed, key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if end, ok := w.young[h]; ok {
		return end
	}
	end, ok := w.old[h]
	if ok {
		delete(w.old, h)
		w.put(h, end)
	}
	return end
}

// learn notes that key's window ends at end.
func (w *windows) learn(key string, end int64) {
	h := maphash.String(w.seed, key)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.old, h)
	w.put(h, end)
}

// forget drops what is known of key.
func (w *windows) forget(key string) {
	h := maphash.String(w.seed, key)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.young, h)
	delete(w.old, h)
}

// put needs mu.
func (w *windows) put(h uint64, end int64) {
	if _, there := w.young[h]; !there && len(w.young) >= w.half {
		clear(w.old)
		w.young, w.old = w.old, w.young
	}
	w.young[h] = end
}
