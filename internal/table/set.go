package table

import (
	"sync"
	"sync/atomic"
)

// maxTables bounds the tables of a Budget; what comes after shares one.
const maxTables = 16

// Budget bounds the tables that several Shapes make together. Each of them makes its
// first table whatever the others have made, so that none has to share a table with
// records of another type.
type Budget struct{ left atomic.Int32 }

// NewBudget returns the budget for so many Shapes: 16 tables, one of them for each.
func NewBudget(shapes int) *Budget {
	b := new(Budget)
	b.left.Store(int32(maxTables - shapes))
	return b
}

func (b *Budget) take() bool {
	for {
		n := b.left.Load()
		if n <= 0 {
			return false
		}
		if b.left.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// Shapes is a table of type T for each shape of limit, so that a flood of keys under
// one limit evicts nothing under another. Tables are made as shapes are met; when the
// budget is spent, further shapes share the last one. Shapes are safe for concurrent use;
// what they hand out has a lock of its own.
type Shapes[S comparable, T any] struct {
	budget *Budget
	build  func() *T
	known  atomic.Pointer[[]shaped[S, T]]
	grow   sync.Mutex
}

type shaped[S comparable, T any] struct {
	shape S
	table *T
}

// NewShapes returns Shapes without a table yet. build is called once for each table.
func NewShapes[S comparable, T any](budget *Budget, build func() *T) *Shapes[S, T] {
	s := &Shapes[S, T]{budget: budget, build: build}
	s.known.Store(new([]shaped[S, T]))
	return s
}

// Of returns the table for a shape.
func (s *Shapes[S, T]) Of(shape S) *T {
	for i, known := 0, *s.known.Load(); i < len(known); i++ {
		if known[i].shape == shape {
			return known[i].table
		}
	}
	return s.add(shape)
}

func (s *Shapes[S, T]) add(shape S) *T {
	s.grow.Lock()
	defer s.grow.Unlock()
	known := *s.known.Load()
	for _, k := range known {
		if k.shape == shape {
			return k.table
		}
	}
	if len(known) > 0 && !s.budget.take() {
		return known[len(known)-1].table
	}
	t := s.build()
	more := append(known[:len(known):len(known)], shaped[S, T]{shape, t})
	s.known.Store(&more)
	return t
}

// All calls f with each table that was made.
func (s *Shapes[S, T]) All(f func(*T)) {
	for _, k := range *s.known.Load() {
		f(k.table)
	}
}

// Set is Shapes of plain tables, with a budget of its own.
type Set[S comparable, R any] struct{ *Shapes[S, Locked[S, R]] }

// Locked is a table with its lock.
type Locked[S comparable, R any] struct {
	sync.Mutex
	*Table[R]
}

// NewSet returns an empty set of tables for at most limit keys each. For gone see New.
func NewSet[S comparable, R any](limit int, gone func(*R)) *Set[S, R] {
	return &Set[S, R]{NewShapes[S](NewBudget(1), func() *Locked[S, R] {
		return &Locked[S, R]{Table: New[R](limit, gone)}
	})}
}

// Sum returns the keys, the held keys and the counters of all tables together.
func (s *Set[S, R]) Sum() (keys, held int, stats Stats) {
	s.All(func(t *Locked[S, R]) {
		t.Lock()
		defer t.Unlock()
		keys += t.Len()
		held += t.HeldLen()
		stats.Add(t.Stats())
	})
	return keys, held, stats
}
