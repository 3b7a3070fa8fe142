package memory

import (
	"sync"
	"time"

	"github.com/sallyport/sallyport/internal/table"
	"github.com/sallyport/sallyport/stores"
)

// shape is what limits have in common that share a table.
type shape struct {
	algorithm     stores.Algorithm
	window, block time.Duration
}

func shapeOf(l *stores.Limit) shape { return shape{l.Algorithm, l.Window, l.Block} }

// plain tells whether a limit is counted by counters: to the nanosecond, in the fewest
// steps.
func plain(l *stores.Limit) bool { return l.Algorithm == stores.Fixed && l.Block == 0 }

// keyed is a table of keys of one shape. A cost is 1 or more, now is a reading of the
// clock. What is owed is paid before the hit; it is
// 0 if until is.
type keyed interface {
	take(key string, limit stores.Limit, cost, owed int64, until time.Duration, now int64) stores.Decision
	peek(key string, limit stores.Limit, cost, now int64) stores.Decision
	refund(key string, limit stores.Limit, cost, now int64)
	reset(key string)
}

// tables are the store's tables, by what they keep of a key. They share one budget: a
// kind of record that comes late still finds a table of its own.
type tables struct {
	maxKeys  int
	counters *table.Shapes[shape, counters] // fixed windows without a block
	levels   *table.Shapes[shape, levels]   // what package meter counts
	logs     *table.Shapes[shape, logs]
}

func newTables(maxKeys int) *tables {
	budget := table.NewBudget(3)
	return &tables{
		maxKeys:  maxKeys,
		counters: table.NewShapes[shape](budget, func() *counters { return newCounters(maxKeys) }),
		levels:   table.NewShapes[shape](budget, func() *levels { return newLevels(maxKeys) }),
		logs:     table.NewShapes[shape](budget, func() *logs { return newLogs(maxKeys) }),
	}
}

func (t *tables) of(limit *stores.Limit) keyed {
	switch {
	case limit.Algorithm == stores.Log:
		return t.logs.Of(shapeOf(limit))
	case plain(limit):
		return t.counters.Of(shapeOf(limit))
	}
	return t.levels.Of(shapeOf(limit))
}

func (t *tables) stats() Stats {
	var sum Stats
	t.counters.All(func(c *counters) { sum.add(c, c) })
	t.levels.All(func(l *levels) { sum.add(l, l) })
	t.logs.All(func(l *logs) { sum.add(l, l) })
	return sum
}

// sized is what every Table has, whatever its records.
type sized interface {
	Len() int
	HeldLen() int
	Stats() table.Stats
}

func (s *Stats) add(lock sync.Locker, t sized) {
	lock.Lock()
	defer lock.Unlock()
	s.Keys += t.Len()
	s.Held += t.HeldLen()
	gone := t.Stats()
	s.Evicted += gone.Evicted
	s.EvictedLive += gone.EvictedLive
	s.EvictedHeld += gone.EvictedHeld
}
