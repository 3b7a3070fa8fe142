package memory

const (
	perPage = 7
	noPage  = ^uint32(0)
	// A stamp has 52 bits, which is 71 years of microseconds to either side of the clock's
	// first reading; the other twelve count.
	countBits = 12
	maxCount  = 1<<countBits - 1
)

// entry is a time stamp and how much was admitted then.
type entry int64

func entryOf(stamp, count int64) entry { return entry(stamp<<countBits | count) }

func (e entry) stamp() int64 { return int64(e) >> countBits }
func (e entry) count() int64 { return int64(e) & maxCount }

// page is as large as a slot of a table, so that one number bounds both.
type page struct {
	entries    [perPage]entry
	prev, next uint32
}

// pages are what the logs of one table are written on. They hold no pointer and are
// never given back to the system.
type pages struct {
	all  []page
	free uint32 // head of the chain of unused pages, linked by next
	most int
}

// get returns a page. The caller has seen to it that fewer than most are in use.
func (p *pages) get() uint32 {
	if p.free == noPage {
		p.grow()
	}
	n := p.free
	p.free = p.all[n].next
	p.all[n] = page{prev: noPage, next: noPage}
	return n
}

// put takes back a chain of pages.
func (p *pages) put(first, last uint32) {
	p.all[last].next = p.free
	p.free = first
}

// grow doubles the pages, up to most.
func (p *pages) grow() {
	old := len(p.all)
	all := make([]page, min(max(64, 2*old), p.most))
	copy(all, p.all)
	for n := len(all) - 1; n >= old; n-- {
		all[n].next = p.free
		p.free = uint32(n)
	}
	p.all = all
}
