package failover

import (
	"time"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/internal/table"
	"github.com/sallyport/sallyport/stores"
)

// level is what is known of a key whose limit is not a plain fixed window: each part
// of it a level of the limit's own kind, which falls as time goes on. Its times are
// process time in microseconds.
type level struct {
	known   meter.State // at least what was let through here, and what the shared store said
	granted meter.State // let through here without the shared store, against this instance's share
	owed    owedLevel   // of that, what the shared store has still to be told
	ahead   int64       // when what a bucket holds that is not owed has drained: that goes first

	pending int64 // asked of the shared store and not answered yet
	paying  int64 // what was owed and is on its way with a hit
	crowded bool  // several hits were on their way at once, so that the last answer may be older than another

	// doubtful: until then the shared store may not know of all that was let through
	// here, and it will not be told, since it may know already.
	doubtful int64

	// unheard: until then the shared store may count a hit whose answer was lost.
	unheard int64

	// blocked: until then a block holds that began here, since the limit was exceeded and
	// not only this instance's share. The shared store does not know of it.
	blocked int64

	resets uint32
	owing  bool // counted among the debts
}

// metered is a hit on such a limit, with the place of its level. Its methods take the
// lock, and process time in nanoseconds.
type metered struct {
	*fallback
	table *table.Locked[shape, level]
	hash  uint64
	rule  meter.Rule
	share meter.Rule
	cost  int64
	brought
}

const (
	nanos    = 1000             // in a microsecond
	underWay = 60 * 1000 * 1000 // for how long a hit that is asked about is kept in mind at least, in microseconds
)

// find returns the key's level, or nil. One whose time is over is as good as new by
// itself; what is on its way to the shared store is kept with it.
func (k *metered) find() (*level, int) {
	i := k.table.Find(k.hash)
	if i < 0 {
		return nil, i
	}
	return k.table.At(i), i
}

func (k *metered) open(us int64) (*level, int) {
	l, i := k.find()
	if l == nil {
		i = k.table.Insert(k.hash, us*nanos)
		l = k.table.At(i)
	}
	return l, i
}

// touch gives the level its class, and the time for which it is worth keeping.
func (k *metered) touch(l *level, i int, us int64) {
	k.setOwing(l, k.owing(l, us) > 0)
	if us < l.doubtful && k.rule.Emission > 0 {
		// What comes behind it waits for it, as long as the bucket is not empty.
		l.doubtful = max(l.doubtful, k.rule.Until(l.known))
	}
	until := max(k.rule.Until(l.known), k.share.Until(l.granted), k.rule.Until(l.owed.level), l.doubtful, l.blocked)
	if l.pending > 0 || l.paying > 0 {
		// A slot that seems to be over would be given to the next key that comes.
		until = max(until, us+underWay)
	}
	k.table.SetUntil(i, until*nanos)
	k.table.Weigh(i, k.rule.Used(l.known, us), k.rule.Quota, us < l.known.Block)
}

// answered takes back a hit that the shared store answered. While it knows of all that
// was let through here, and no other hit is on its way, its word replaces what is
// known. Otherwise its word is one account and this instance's another, and neither
// is a whole one.
//
// Of an answer that crossed a Reset nobody knows on which side of it the hit was
// counted. If it was let through it is held for the later side, and no more is learned.
func (k *metered) answered(d debt, told *stores.Decision, certain, crossed bool, now int64) {
	us := now / nanos
	k.table.Lock()
	defer k.table.Unlock()
	alone := k.back(d)
	k.paid(d, us)
	if d.owed > 0 && !told.Allowed && told.Remaining == 0 {
		k.cropped(d, us)
	}
	lowered := k.lowered(d, us)
	if !told.Allowed && (crossed || !certain) {
		k.settled(us)
		return
	}
	l, i := k.open(us)
	whole := alone && l.paying == 0 && us >= l.doubtful && k.owing(l, us) == 0
	if told.Allowed {
		if k.rule.Algorithm == stores.Leaky && !whole {
			// The departures that were given here come first.
			told.Delay = max(told.Delay, time.Duration(l.known.End-us)*time.Microsecond)
		}
		k.rule.Add(&l.known, k.cost, us)
		k.putAhead(l, k.cost, us)
	}
	if !crossed && told.ResetAfter > 0 {
		heard := said(&k.rule, told, us)
		l.ahead = max(l.ahead, heard.End)
		if whole && !(lowered && told.Remaining == 0) {
			l.known, l.ahead = heard, heard.End
		} else {
			// What is owed the shared store did not know of when it spoke.
			k.rule.Add(&heard, l.paying+k.owing(l, us), us)
			k.rule.Join(&l.known, heard, us)
		}
	}
	k.touch(l, i, us)
}

// take decides about a hit without the shared store. If the shared store can be told
// of it later, what is let through is owed.
func (k *metered) take(now int64, owes bool) stores.Decision {
	us := now / nanos
	k.table.Lock()
	defer k.table.Unlock()
	k.own(us)
	l, i := k.open(us)
	a, blocked := k.decide(l, us)
	if blocked > l.known.Block && !k.rule.Peek(k.whole(l, us), k.cost, us).Allowed {
		l.blocked = blocked
	}
	if a.Allowed {
		k.rule.Add(&l.known, k.cost, us)
		k.share.Add(&l.granted, k.cost, us)
		if owes {
			k.owe(l, k.cost, k.ends(l, us), us)
		} else {
			k.putAhead(l, k.cost, us)
			l.doubtful = max(l.doubtful, k.rule.Until(l.known))
		}
	}
	l.known.Block = max(l.known.Block, blocked)
	k.touch(l, i, us)
	return a.Decision(stores.Local)
}

func (k *metered) peek(now int64) stores.Decision {
	us := now / nanos
	k.table.Lock()
	defer k.table.Unlock()
	l, _ := k.find()
	if l == nil {
		l = &level{}
	}
	known := k.whole(l, us)
	a, mine := k.rule.Peek(known, k.cost, us), k.share.Peek(l.granted, min(k.cost, k.share.Quota), us)
	return k.both(a, mine).Decision(stores.Local)
}

// decide says what the fallback makes of the hit: allowed while there is room in the
// quota, with what is on its way to the shared store taken as counted there, and in
// this instance's share of it. It also returns until when the key is blocked.
func (k *metered) decide(l *level, us int64) (a meter.Answer, blocked int64) {
	known, granted := k.whole(l, us), l.granted
	a = k.both(k.rule.Take(&known, k.cost, us), k.share.Take(&granted, min(k.cost, k.share.Quota), us))
	if !a.Allowed && k.rule.Block > 0 && us >= l.known.Block {
		return a, us + a.Retry
	}
	return a, l.known.Block
}

// whole is the level that is known with what is on its way.
func (k *metered) whole(l *level, us int64) meter.State {
	known := l.known
	k.rule.Add(&known, l.pending, us)
	return known
}

// both is the stricter of two answers. A cost above this instance's share does not
// fit into it, ever; then it waits for as long as for the whole share.
func (k *metered) both(a, mine meter.Answer) meter.Answer {
	if k.cost > k.share.Quota && mine.Allowed {
		mine.Allowed, mine.Retry = false, k.rule.Window
	}
	delay := a.Delay
	a = meter.Answer{
		Allowed:   a.Allowed && mine.Allowed,
		Remaining: min(a.Remaining, mine.Remaining),
		Retry:     max(a.Retry, mine.Retry),
		Reset:     max(a.Reset, mine.Reset, a.Retry, mine.Retry),
	}
	if a.Allowed {
		a.Delay = delay
	}
	return a
}

// refund gives back a hit that the fallback or the shared store counted.
func (k *metered) refund(local bool, now int64) {
	us := now / nanos
	k.table.Lock()
	defer k.table.Unlock()
	l, i := k.find()
	if l == nil {
		return
	}
	k.rule.Refund(&l.known, k.cost, us)
	if local {
		k.share.Refund(&l.granted, k.cost, us)
		k.forgive(l, us)
	}
	k.touch(l, i, us)
}

// reset empties the level. What is on its way to the shared store still is.
func (k *metered) reset(now int64) {
	us := now / nanos
	k.table.Lock()
	defer k.table.Unlock()
	l, i := k.find()
	if l == nil {
		return
	}
	k.setOwing(l, false)
	*l = level{pending: l.pending, paying: l.paying, resets: l.resets + 1}
	k.touch(l, i, us)
}
