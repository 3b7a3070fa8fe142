package dynamo

import (
	"context"
	"fmt"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// Refund implements stores.Refunder by one UpdateItem, or two where less or more is
// counted than is simply taken off, and for a log, whose stamps have to be seen first.
// It is not idempotent: after an error that is not definite the cost may have been
// given back.
func (s *Store) Refund(ctx context.Context, hit stores.Hit) error {
	if err := s.admit(ctx, hit); err != nil {
		return err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	began := s.clock.read()
	t := newTaking(s, hit)
	t.cost = min(t.cost, t.rule.Quota)
	c := t.giveBack(nil, t.now(began), 0)
	for try := range t.most() {
		a, err := s.update(ctx, began, hit.Key, c)
		if err != nil {
			return err
		}
		if a.met {
			return nil
		}
		seen, ok := t.read(a.item)
		switch {
		case !ok:
			return malformed(updateItem, true)
		case !seen.there:
			return nil
		}
		if c = t.giveBack(&seen, t.now(began), try); c == nil {
			return nil
		}
	}
	return &fault.Error{
		Kind: stores.ErrUnavailable, Definite: true, KeyOnly: true,
		Text: fmt.Sprintf("dynamo: UpdateItem: the item changed %d times while a cost was given back", t.most()),
	}
}

// giveBack is the call that gives the cost back where the item is as it was seen, or nil if
// there is nothing to give. Before it was seen (nil) it is the call for what is most
// likely there, whose condition holds nowhere else.
func (t *taking) giveBack(s *state, now int64, try int) *call {
	switch t.rule.Algorithm {
	case stores.Log:
		return t.giveBackLog(s, now, try)
	case stores.Token, stores.Leaky:
		return t.giveBackBucket(s, now)
	case stores.Sliding:
		return t.giveBackSliding(s, now)
	}
	return t.giveBackFixed(s, now)
}

var (
	// uncount takes a cost out of an open window that holds at least as much and no
	// more than the quota: for sliding windows, of the newer one.
	uncount = newExpression("ADD #n :c", "#e > :now AND #n >= :least AND #n <= :full")

	// empty is for one that holds less, cut for one that a lowered quota left above it.
	empty = newExpression("SET #n = :zero", "#e > :now AND #n < :least")
	cut   = newExpression("SET #n = :rest", "#e > :now AND #n > :full")

	// unslide is for all else in two windows; unroll for the older one, where the newer
	// one has nothing yet.
	unslide = newExpression("SET #n = :n, #p = :p", "#e = :seen AND #n = :was AND #p = :pwas")
	unroll  = newExpression("SET #p = :p, #n = :zero, #e = :end", "#e = :seen AND #n = :was")

	// A bucket has the same three.
	unpour    = newExpression("ADD #t :c", "#t >= :least AND #t <= :full")
	emptyPour = newExpression("SET #t = :now", "#t > :now AND #t < :least")
	cutPour   = newExpression("SET #t = :rest", "#t > :full")

	// look shows a log and changes nothing: nothing is below 0.
	look = newExpression("SET #q = :zero", "#q < :zero")
)

func (t *taking) giveBackFixed(s *state, now int64) *call {
	values := map[string]int64{":now": now, ":c": -t.cost, ":least": t.cost, ":full": t.rule.Quota, ":rest": t.rule.Quota - t.cost, ":zero": 0}
	switch {
	case s == nil:
		return uncount.bind(values)
	case s.End <= now || s.N == 0:
		return nil
	case s.N > t.rule.Quota:
		return cut.bind(values)
	case s.N < t.cost:
		return empty.bind(values)
	}
	return uncount.bind(values)
}

func (t *taking) giveBackSliding(s *state, now int64) *call {
	quota, length := t.rule.Quota, t.rule.Window
	if s == nil || s.End > now && s.N >= t.cost && s.N <= quota {
		return t.giveBackFixed(nil, now)
	}
	values := map[string]int64{":seen": s.End, ":was": s.N, ":pwas": s.P, ":end": s.End + length, ":zero": 0}
	if s.End <= now {
		if s.N == 0 || now >= s.End+length {
			return nil
		}
		values[":p"] = max(0, min(s.N, quota)-t.cost)
		return unroll.bind(values)
	}
	if s.N == 0 && s.P == 0 {
		return nil
	}
	n := min(s.N, quota)
	taken := min(n, t.cost)
	values[":n"], values[":p"] = n-taken, s.P
	if rest := t.cost - taken; rest > 0 {
		values[":p"] = max(0, min(s.P, quota)-rest)
	}
	return unslide.bind(values)
}

func (t *taking) giveBackBucket(s *state, now int64) *call {
	cost, full := t.cost*t.rule.Emission, now+t.rule.Burst
	values := map[string]int64{":now": now, ":c": -cost, ":least": now + cost, ":full": full, ":rest": full - cost}
	switch {
	case s == nil:
		return unpour.bind(values)
	case s.End <= now:
		return nil
	case s.End > full:
		return cutPour.bind(values)
	case s.End < now+cost:
		return emptyPour.bind(values)
	}
	return unpour.bind(values)
}
