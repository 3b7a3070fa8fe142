package table

import (
	"sync"
	"sync/atomic"
)

// maxTables bounds a Set; what comes after shares the last one.
const maxTables = 16

// Set is a table for each shape of limit, so that a flood of keys under one limit
// evicts nothing under another. Tables are made as shapes are met. It is safe for
// concurrent use; what it hands out has a lock of its own.
type Set[S comparable, R any] struct {
	limit  int
	gone   func(*R)
	tables atomic.Pointer[[]*Locked[S, R]]
	grow   sync.Mutex
}

// Locked is a table with its lock and the shape that it was made for.
type Locked[S comparable, R any] struct {
	sync.Mutex
	*Table[R]
	shape S
}

// NewSet returns an empty set of tables for at most limit keys each. For gone see New.
func NewSet[S comparable, R any](limit int, gone func(*R)) *Set[S, R] {
	s := &Set[S, R]{limit: limit, gone: gone}
	s.tables.Store(new([]*Locked[S, R]))
	return s
}

// Of returns the table for a shape.
func (s *Set[S, R]) Of(shape S) *Locked[S, R] {
	for _, t := range *s.tables.Load() {
		if t.shape == shape {
			return t
		}
	}
	return s.add(shape)
}

func (s *Set[S, R]) add(shape S) *Locked[S, R] {
	s.grow.Lock()
	defer s.grow.Unlock()
	known := *s.tables.Load()
	for _, t := range known {
		if t.shape == shape {
			return t
		}
	}
	if len(known) == maxTables {
		return known[maxTables-1]
	}
	t := &Locked[S, R]{shape: shape, Table: New[R](s.limit, s.gone)}
	more := append(known[:len(known):len(known)], t)
	s.tables.Store(&more)
	return t
}

// Sum returns the keys, the held keys and the counters of all tables together.
func (s *Set[S, R]) Sum() (keys, held int, stats Stats) {
	for _, t := range *s.tables.Load() {
		t.Lock()
		keys += t.Len()
		held += t.HeldLen()
		stats.Evicted += t.stats.Evicted
		stats.EvictedLive += t.stats.EvictedLive
		stats.EvictedHeld += t.stats.EvictedHeld
		t.Unlock()
	}
	return keys, held, stats
}
