package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// TakeAll implements stores.Batcher: all hits share one deadline and, where the shared
// store is a stores.Batcher, one call. The remembered refusals of all of them are
// looked up before any is charged: if there is one, it is out[n-1], and the decisions
// before it say Allowed from the Source None, since nobody counted those hits.
func (s *Store) TakeAll(ctx context.Context, hits []stores.Hit, out []stores.Decision) (int, error) {
	return s.TakeEach(ctx, hits, nil, out)
}

// TakeEach is TakeAll for a chain in which some refusals end nothing: where open[i]
// is true a refusal of hits[i] does not stop it, and no remembered refusal answers
// hits[i]. A nil open is all false. Package handler uses it for policies that are
// counted but not enforced.
func (s *Store) TakeEach(ctx context.Context, hits []stores.Hit, open []bool, out []stores.Decision) (int, error) {
	if len(out) < len(hits) || open != nil && len(open) < len(hits) {
		return 0, fmt.Errorf("%w batch: room for %d decisions on %d hits", stores.ErrInvalid, len(out), len(hits))
	}
	if len(hits) == 0 {
		return 0, nil
	}
	for i := range hits {
		if err := s.admit(ctx, &hits[i]); err != nil {
			// Those before it are not charged for a chain that can't be decided.
			return 0, err
		}
	}
	now := s.clock.Now()
	for i := range hits {
		if open != nil && open[i] {
			continue
		}
		if d, ok := s.recall(&hits[i], now); ok {
			for before := range out[:i] {
				out[before] = stores.Decision{Allowed: true, Source: stores.None}
			}
			out[i] = d
			return i + 1, nil
		}
	}
	c := s.newCall(ctx, now)
	defer c.end()
	ch := chain{hits: hits, open: open, out: out}
	for ch.n < len(hits) {
		over, err := s.takeSome(&c, &ch)
		if err != nil || over {
			return ch.n, err
		}
	}
	return ch.n, nil
}

// chain is several hits to be decided in order, of which n are.
type chain struct {
	hits []stores.Hit
	open []bool
	out  []stores.Decision
	n    int
}

// decided notes the decision about the next hit, and tells whether it ends the chain.
func (ch *chain) decided(d stores.Decision) (over bool) {
	ends := !d.Allowed && (ch.open == nil || !ch.open[ch.n])
	ch.out[ch.n] = d
	ch.n++
	return ends
}

// chainer is a store that decides about several hits in one call, of which some may
// carry a debt and some refusals may end nothing. It is stores.Batcher otherwise, but
// that an error may be about all hits behind out[:n]; certain[i] tells whether the end
// that out[i] tells of is sure.
type chainer interface {
	TakeChain(ctx context.Context, hits []stores.Hit, open []bool, owed []int, until []time.Duration, out []stores.Decision, certain []bool) (n int, err error)
}

// batch makes a chainer of any Batcher, for chains without debts in which every
// refusal is the end.
type batch struct{ stores.Batcher }

func (b batch) TakeChain(ctx context.Context, hits []stores.Hit, _ []bool, _ []int, _ []time.Duration, out []stores.Decision, certain []bool) (int, error) {
	for i := range certain {
		certain[i] = true
	}
	return b.TakeAll(ctx, hits, out)
}

func chainOf(shared stores.Store) (c chainer, plain bool) {
	switch shared := shared.(type) {
	case chainer:
		return shared, false
	case stores.Batcher:
		return batch{shared}, true
	}
	return nil, false
}

// takeSome decides about one hit or more, with one question to the shared store.
func (s *Store) takeSome(c *call, ch *chain) (over bool, err error) {
	if s.chain != nil && ch.several(s.plain) {
		l := s.load(c, ch)
		if len(l.keys) > 1 && !(s.plain && l.owing) {
			return s.takeLoad(c, ch, l)
		}
		// Nothing was sent yet.
		for i := range l.keys {
			l.keys[i].failed(l.debts[i], true, s.clock.Now())
		}
	}
	hit := &ch.hits[ch.n]
	k := s.fallback.of(hit)
	d, err := s.takeOne(c, &k, hit)
	if err != nil {
		return true, err
	}
	return ch.decided(d), nil
}

// several tells whether more than one hit is left that can be asked about at once.
func (ch *chain) several(plain bool) bool {
	if plain && ch.open != nil {
		for _, open := range ch.open[ch.n:] {
			if open {
				return false
			}
		}
	}
	return len(ch.hits)-ch.n > 1
}

// load is what goes to the shared store in one call: the next hits of a chain.
type load struct {
	keys  []keyed
	debts []debt
	marks []mark
	owed  []int
	until []time.Duration
	told  []stores.Decision
	sure  []bool
	begun int64
	owing bool
}

// load makes ready to ask about the chain's next hits, as many as can be asked about
// at once: not one whose key can't be asked about, and not one that has to wait for
// a payment on its way, which may be one in the same load.
func (s *Store) load(c *call, ch *chain) *load {
	most := len(ch.hits) - ch.n
	l := &load{begun: s.clock.Now()}
	if s.closed(c, &ch.hits[ch.n], l.begun) != nil {
		return l // before a deadline is set, which in an outage no request should pay for
	}
	due, ok := s.due(c, l.begun)
	if !ok {
		return l
	}
	for i := ch.n; i < ch.n+most; i++ {
		hit := &ch.hits[i]
		if hit.Cost > hit.Limit.Quota || s.closed(c, hit, l.begun) != nil {
			break
		}
		k := s.fallback.of(hit)
		d, wait, err := k.send(l.begun, due)
		if wait != nil || err != nil {
			break
		}
		l.keys = append(l.keys, k)
		l.debts = append(l.debts, d)
		l.marks = append(l.marks, s.refusals.mark(hit))
		l.owed = append(l.owed, int(min(d.owed, int64(hit.Limit.Quota))))
		l.until = append(l.until, min(d.until, hit.Limit.Window))
		l.owing = l.owing || d.owed > 0
	}
	return l
}

// takeLoad asks the shared store about a load. What that does not decide because the
// chain was over is taken back; what it does not decide because it failed is decided
// without it: it may have counted all of it, and nothing is asked twice.
func (s *Store) takeLoad(c *call, ch *chain, l *load) (over bool, err error) {
	hits := ch.hits[ch.n : ch.n+len(l.keys)]
	var open []bool
	if ch.open != nil {
		open = ch.open[ch.n : ch.n+len(l.keys)]
	}
	owed, until := l.owed, l.until
	if !l.owing {
		owed, until = nil, nil
	}
	l.told, l.sure = make([]stores.Decision, len(hits)), make([]bool, len(hits))
	n := 0
	asked, err := s.put(c, func(ctx context.Context) (err error) {
		n, err = s.chain.TakeChain(ctx, hits, open, owed, until, l.told, l.sure)
		if n < 0 || n > len(hits) || err == nil && n == 0 {
			n, err = 0, errMiscounted
		}
		return err
	})
	now := s.clock.Now()
	if err != nil && !asked {
		n = 0
	}
	for i := range n {
		s.heard(&l.keys[i], &hits[i], l.debts[i], &l.told[i], l.sure[i], l.marks[i], l.begun, now)
		over = ch.decided(l.told[i])
		if over && i < n-1 {
			// It went on behind a refusal; what it says of that is not asked for.
			n, err = i+1, nil
			break
		}
	}
	definite := err == nil || !asked || fault.Definite(err) || final(err)
	for i := n; i < len(hits); i++ {
		l.keys[i].failed(l.debts[i], definite, now)
	}
	switch {
	case over || err == nil:
		return over, nil
	case errors.Is(err, errors.ErrUnsupported):
		// Perhaps one by one: what can't be served at all says so then.
		k := s.fallback.of(&hits[n])
		d, err := s.takeOne(c, &k, &hits[n])
		if err != nil {
			return true, err
		}
		return ch.decided(d), nil
	case final(err):
		return true, err
	}
	rest := len(hits)
	if keyOnly(err) {
		s.hot.add(hits[n].Key, now)
		if definite {
			rest = n + 1
		}
	}
	for i := n; i < rest && !over; i++ {
		over = ch.decided(s.without(c, &l.keys[i], &hits[i], err, definite))
	}
	return over, nil
}

var errMiscounted = &fault.Error{Kind: stores.ErrUnavailable,
	Text: "shared store decided about another number of hits than it was asked about"}

// heard takes over what the shared store decided about a hit.
func (s *Store) heard(k *keyed, hit *stores.Hit, d debt, told *stores.Decision, certain bool, began mark, begun, now int64) {
	bound(hit.Limit, told)
	s.counts.shared.Add(1)
	k.answered(d, told, certain, began.crossedReset(s.refusals.mark(hit)), now, now-begun)
	switch {
	case told.Allowed && hit.Limit.Algorithm != stores.Fixed:
		s.refusals.outdate(hit)
	case !told.Allowed && certain:
		s.refusals.remember(hit, told, began, begun, now)
	}
}
