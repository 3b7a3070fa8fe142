package failover

import (
	"sync/atomic"
	"time"

	"github.com/sallyport/sallyport/internal/table"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// fallback is what this instance knows of its keys, from the shared store's answers
// and from its own decisions. When the shared store fails, it goes on from there: a
// key that had used four of five has one left, not five.
type fallback struct {
	tables    *table.Set[shape, record] // of fixed windows without a block
	meters    *table.Set[shape, level]  // of all other limits
	instances int64
	debts     atomic.Int64 // records with something owed
	payments  payments
}

type shape struct {
	algorithm     stores.Algorithm
	window, block time.Duration
}

func newFallback(maxKeys, instances int) *fallback {
	if maxKeys == 0 {
		maxKeys = defaultMaxKeys
	}
	f := &fallback{instances: int64(instances)}
	f.tables = table.NewSet[shape](maxKeys, func(r *record) { f.setOwed(r, 0) })
	f.meters = table.NewSet[shape](maxKeys, func(l *level) { f.setOwing(l, false) })
	return f
}

func (f *fallback) stats() memory.Stats {
	keys, held, t := f.tables.Sum()
	more, moreHeld, m := f.meters.Sum()
	return memory.Stats{
		Keys:        keys + more,
		Held:        held + moreHeld,
		Evicted:     t.Evicted + m.Evicted,
		EvictedLive: t.EvictedLive + m.EvictedLive,
		EvictedHeld: t.EvictedHeld + m.EvictedHeld,
	}
}
