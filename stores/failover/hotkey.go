package failover

import (
	"math/rand/v2"
	"sync"

	"github.com/sallyport/sallyport/internal/table"
)

// hotKeys are the keys that the shared store can't serve for the moment while it
// serves others: one throttled key must not send all to the fallback.
type hotKeys struct {
	mu    sync.Mutex
	table *table.Table[struct{}]
}

func newHotKeys(maxKeys int) *hotKeys {
	if maxKeys == 0 {
		maxKeys = defaultMaxKeys
	}
	return &hotKeys{table: table.New[struct{}](maxKeys, nil)}
}

func (h *hotKeys) is(key string, now int64) bool {
	hash := h.table.Hash(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.table.Find(hash)
	return i >= 0 && now < h.table.Until(i)
}

// add keeps key away from the shared store for one to five seconds.
func (h *hotKeys) add(key string, now int64) {
	hash := h.table.Hash(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.table.Find(hash)
	if i < 0 {
		i = h.table.Insert(hash, now)
	}
	h.table.SetUntil(i, now+int64(openLeast+rand.N(openMost-openLeast)))
	h.table.Touch(i, 0)
}
