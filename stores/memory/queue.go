package memory

// queue is the log of one key: entries by their stamps, the oldest first, on a chain of
// pages.
type queue struct {
	live       int64 // the sum of the counts
	block      int64 // refused until then
	head, tail uint32
	pages      uint32
	first      uint8 // of the head page, the oldest entry
	end        uint8 // of the tail page, the place behind the newest entry
}

// place is where an entry stands.
type place struct {
	page uint32
	at   uint8
}

func (p *pages) entry(at place) *entry { return &p.all[at.page].entries[at.at] }

func (p *pages) oldest(q *queue) *entry { return p.entry(place{q.head, q.first}) }
func (p *pages) newest(q *queue) *entry { return p.entry(place{q.tail, q.end - 1}) }

func (p *pages) after(at place) place {
	if at.at++; at.at == perPage {
		return place{p.all[at.page].next, 0}
	}
	return at
}

func (p *pages) before(at place) place {
	if at.at == 0 {
		return place{p.all[at.page].prev, perPage - 1}
	}
	at.at--
	return at
}

// wanting returns how many pages are wanting for so many further entries.
func (q *queue) wanting(entries int64) int64 {
	room := int64(0)
	switch {
	case q.pages == 1:
		room = int64(perPage - (q.end - q.first)) // see shift
	case q.pages > 1:
		room = int64(perPage - q.end)
	}
	return (max(0, entries-room) + perPage - 1) / perPage
}

// shift moves the entries of a queue of one page to its start, so that a quota of
// one page's entries never needs a second page.
func (p *pages) shift(q *queue) {
	if q.pages == 1 && q.first > 0 && q.end == perPage {
		e := &p.all[q.head].entries
		q.end = uint8(copy(e[:], e[q.first:q.end]))
		q.first = 0
	}
}

// push appends an entry.
func (p *pages) push(q *queue, e entry) {
	p.shift(q)
	if q.pages == 0 || q.end == perPage {
		n := p.get()
		if q.pages == 0 {
			q.head, q.first = n, 0
		} else {
			p.all[q.tail].next, p.all[n].prev = n, q.tail
		}
		q.tail, q.end = n, 0
		q.pages++
	}
	p.all[q.tail].entries[q.end] = e
	q.end++
	q.live += e.count()
}

// add counts so much at a stamp, at its place among the others. It must have been
// found room for.
func (p *pages) add(q *queue, stamp, cost int64) {
	if q.pages > 0 {
		if newest := p.newest(q); newest.stamp() == stamp {
			// The same entry, as far as its count goes.
			n := min(cost, maxCount-newest.count())
			*newest = entryOf(stamp, newest.count()+n)
			q.live += n
			cost -= n
		}
	}
	late := q.pages > 0 && p.newest(q).stamp() > stamp
	from := int64(0)
	for ; cost > 0; cost -= min(cost, maxCount) {
		p.push(q, entryOf(stamp, min(cost, maxCount)))
		from++
	}
	if late {
		p.sink(q, from)
	}
}

// sink moves the last n entries, which have one stamp, before all that are newer.
func (p *pages) sink(q *queue, n int64) {
	to := place{q.tail, q.end - 1}
	stamp, last := p.entry(to).stamp(), *p.entry(to)
	from := to
	for range n {
		from = p.before(from)
	}
	oldest := place{q.head, q.first}
	for {
		e := *p.entry(from)
		if e.stamp() <= stamp {
			break
		}
		*p.entry(to) = e
		to = p.before(to)
		if from == oldest {
			break
		}
		from = p.before(from)
	}
	// All of them are full but the last.
	*p.entry(to) = last
	for range n - 1 {
		to = p.before(to)
		*p.entry(to) = entryOf(stamp, maxCount)
	}
}

// dropOldest takes so much, which must be there, from the oldest entries. It returns
// the number of pages that got free.
func (p *pages) dropOldest(q *queue, cost int64) (freed int) {
	for cost > 0 {
		e := p.oldest(q)
		n := min(cost, e.count())
		cost -= n
		q.live -= n
		if n < e.count() {
			*e = entryOf(e.stamp(), e.count()-n)
			return freed
		}
		if q.live == 0 {
			return freed + p.clear(q)
		}
		if q.first++; q.first == perPage {
			n := q.head
			q.head, q.first = p.all[n].next, 0
			p.put(n, n)
			q.pages--
			freed++
		}
	}
	return freed
}

// dropNewest is dropOldest from the other end.
func (p *pages) dropNewest(q *queue, cost int64) (freed int) {
	for cost > 0 {
		e := p.newest(q)
		n := min(cost, e.count())
		cost -= n
		q.live -= n
		if n < e.count() {
			*e = entryOf(e.stamp(), e.count()-n)
			return freed
		}
		if q.live == 0 {
			return freed + p.clear(q)
		}
		if q.end--; q.end == 0 {
			n := q.tail
			q.tail, q.end = p.all[n].prev, perPage
			p.put(n, n)
			q.pages--
			freed++
		}
	}
	return freed
}

// clear drops everything but the block.
func (p *pages) clear(q *queue) (freed int) {
	if freed = int(q.pages); freed > 0 {
		p.put(q.head, q.tail)
	}
	*q = queue{block: q.block}
	return freed
}

// expire drops what was admitted at the time over or before.
func (p *pages) expire(q *queue, over int64) (freed int) {
	if q.pages == 0 {
		return 0
	}
	if p.newest(q).stamp() <= over {
		return p.clear(q)
	}
	for e := p.oldest(q); e.stamp() <= over; e = p.oldest(q) {
		freed += p.dropOldest(q, e.count())
	}
	return freed
}

// stampOf returns the stamp of the unit that stands at so much, 1 or more, from the
// oldest on.
func (p *pages) stampOf(q *queue, units int64) int64 {
	at := place{q.head, q.first}
	for {
		e := p.entry(at)
		if units -= e.count(); units <= 0 {
			return e.stamp()
		}
		at = p.after(at)
	}
}
