package dynamo

import (
	"sync"

	"github.com/sallyport/sallyport/internal/table"
)

// maxWindows is how many keys an instance knows the window's end of.
const maxWindows = 50_000

// windows remembers the last end seen for a key, in milliseconds of the server's clock.
// It chooses which call is tried first and nothing else: to lose an entry, or to mix two
// keys up, costs one call. Under a flood of keys those that are in use stay.
type windows struct {
	mu    sync.Mutex
	table *table.Table[struct{}] // a slot's time is the end
}

func newWindows(limit int) *windows { return &windows{table: table.New[struct{}](limit, nil)} }

// end returns the last end seen for key, 0 if none is known.
func (w *windows) end(key string) int64 {
	hash := w.table.Hash(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.table.Find(hash)
	if i < 0 {
		return 0
	}
	w.table.Touch(i, 0)
	return w.table.Until(i)
}

// learn notes that key's window ends at end. Ends that are over go by being the
// oldest: two clocks meet in them, and which of them is right is not known here.
func (w *windows) learn(key string, end int64) {
	hash := w.table.Hash(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.table.Find(hash)
	if i < 0 {
		i = w.table.Insert(hash, 0)
	}
	w.table.SetUntil(i, end)
	w.table.Touch(i, 0)
}

// forget drops what is known of key.
func (w *windows) forget(key string) {
	hash := w.table.Hash(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := w.table.Find(hash); i >= 0 {
		w.table.Delete(i)
	}
}
