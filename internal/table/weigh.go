package table

// Weigh ranks a slot by what is used of its quota: as held if that is all of it, or if
// the caller says so (of a blocked key), else as open.
//
// A level may fall by itself, as a bucket drains or an old window slides out, or by a
// refund. At the border of two classes it would come down and go up again at the price
// of a hit, and each time the slot would be the newest of its class: an attacker would keep
// what he filled the table with fresher than what he wants forgotten, for next to nothing.
// So a slot comes down only when its level is below half of what its class begins with,
// and to come up again it has to be used as much anew.
func (t *Table[R]) Weigh(i int, used, quota int64, held bool) {
	was := int(t.slots[i].class)
	class := Open(used)
	switch {
	case held || used >= quota:
		class = Held(quota)
	case was >= openClasses:
		if used >= quota-used {
			class = Held(quota)
		}
	case class == was-1:
		class = was
	}
	t.Rank(i, class)
}
