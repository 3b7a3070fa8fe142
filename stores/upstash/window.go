package upstash

import (
	"sync"

	"github.com/sallyport/sallyport/internal/table"
)

// maxWindows bounds what an instance knows of windows, at some 60 bytes each.
const maxWindows = 50_000

// window is what an instance knows of a key's window. Times are of the store's clock.
// The zero window is one of which nothing is known.
type window struct {
	n     int64 // the largest count seen in it
	end   int64 // it is over by then
	early int64 // and, unless the key was deleted, not before
}

// windows remembers the ends of windows, so that a hit need not ask for them. It is
// for thrift only: a window that was pushed out costs one PTTL. Under a flood of keys
// those that were hit most stay longest.
type windows struct {
	mu    sync.Mutex
	table *table.Table[window]
}

func newWindows() *windows { return &windows{table: table.New[window](maxWindows, nil)} }

// find returns the key's window if it is not over, and else the zero window.
func (w *windows) find(key string, now int64) window {
	hash := w.table.Hash(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := w.table.Find(hash); i >= 0 && now < w.table.Until(i) {
		return *w.table.At(i)
	}
	return window{}
}

// follow puts next in the place of what was seen before the exchange; a zero next
// forgets. If another answer changed or forgot the window meanwhile, it only forgets.
// It tells whether nothing had changed.
func (w *windows) follow(key string, seen, next window, now int64) (unchanged bool) {
	hash := w.table.Hash(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.table.Find(hash)
	var there window
	if i >= 0 {
		there = *w.table.At(i)
		if there.end <= now && there.end != seen.end {
			there = window{} // it is over, and find would not have shown it
		}
	}
	unchanged = there.end == seen.end
	switch {
	case next.end == 0 && i >= 0:
		w.table.Delete(i)
		return unchanged
	case next.end == 0 || !unchanged:
		return unchanged
	case i < 0:
		i = w.table.Insert(hash, now)
	case there.end == next.end:
		next.n = max(next.n, there.n) // answers may overtake each other
	}
	*w.table.At(i) = next
	w.table.SetUntil(i, next.end)
	w.table.Touch(i, table.Open(next.n))
	return unchanged
}

func (w *windows) forget(key string) {
	hash := w.table.Hash(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := w.table.Find(hash); i >= 0 {
		w.table.Delete(i)
	}
}
