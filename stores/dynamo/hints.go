package dynamo

import (
	"sync"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/internal/table"
	"github.com/sallyport/sallyport/stores"
)

// maxHints is how many keys an instance knows something of.
const maxHints = 50_000

// hint is what was seen last under a key, apart from the end: when the window ends, when
// a bucket is whole again, when the newest stamp of a log is over.
type hint struct {
	n, p  int64                 // as in meter.State; of a log: when slot p, its oldest stamp, is over
	taken [maxLog/64 + 1]uint64 // of a log: the slots that held a stamp
}

// hints remembers what was seen of a key, by the server's clock. It chooses which
// call is tried first and nothing else: to lose an entry, or to mix two keys up,
// costs one call. Under a flood of keys those that are in use stay.
type hints struct {
	mu    sync.Mutex
	table *table.Table[hint] // a slot's time is the end
}

func newHints(limit int) *hints { return &hints{table: table.New[hint](limit, nil)} }

// recall returns what was last seen of key; the end is 0 if nothing is known.
func (h *hints) recall(key string) (end int64, seen hint) {
	hash := h.table.Hash(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.table.Find(hash)
	if i < 0 {
		return 0, hint{}
	}
	h.table.Touch(i, 0)
	return h.table.Until(i), *h.table.At(i)
}

// learn notes what was seen of key. Ends that are over go by being the
// oldest: two clocks meet in them, and which of them is right is not known here.
func (h *hints) learn(key string, end int64, seen hint) {
	hash := h.table.Hash(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.table.Find(hash)
	if i < 0 {
		i = h.table.Insert(hash, 0)
	}
	*h.table.At(i) = seen
	h.table.SetUntil(i, end)
	h.table.Touch(i, 0)
}

// forget drops what is known of key.
func (h *hints) forget(key string) {
	hash := h.table.Hash(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := h.table.Find(hash); i >= 0 {
		h.table.Delete(i)
	}
}

// recall is the state that the item had when this instance saw it last, or that of a
// key never seen: most keys that an attacker brings are new.
func (t *taking) recall(now int64) *state {
	end, seen := t.s.hints.recall(t.key)
	s := &state{guessed: true}
	if t.rule.Algorithm == stores.Log {
		s.slots = seen.slots(end, now)
		return s
	}
	s.State = meter.State{End: end, N: seen.n, P: seen.p}
	return s
}

func (t *taking) learn(s *state, now int64) {
	if !s.there {
		t.s.hints.forget(t.key)
		return
	}
	if t.rule.Algorithm == stores.Log {
		end, seen := t.hintOfLog(s, now)
		t.s.hints.learn(t.key, end, seen)
		return
	}
	t.s.hints.learn(t.key, s.End, hint{n: s.N, p: s.P})
}
