package table

// Aside takes one off what the table may hold, for something that the key in slot i keeps
// outside of it. If the table is full another key is evicted as by Insert; what that had
// set aside its owner gives back when he is told that it is gone. Aside returns false
// if there is no other key.
func (t *Table[R]) Aside(i int, now int64) bool {
	if t.keys >= t.Room() {
		if t.keys < 2 {
			return false
		}
		t.evict(now, uint32(i))
	}
	t.aside++
	return true
}

// Back gives back what was set aside.
func (t *Table[R]) Back(n int) { t.aside -= n }

// Room returns how many slots the limit leaves for keys.
func (t *Table[R]) Room() int { return t.limit - t.aside }
