package upstash

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// maxBatch bounds the hits of one TakeAll: with the longest keys that is a request of
// some 40 KB, and while the script is at it the server serves none of these keys to
// others.
const maxBatch = 64

// TakeAll implements [stores.Batcher] by one exchange, in which all hits are decided as
// one step, whatever their algorithms. More than 64 hits are an error that wraps
// [stores.ErrInvalid]. If one hit is invalid none is counted, and n is 0; so it is if
// the exchange fails. But if it is one key that fails, since something else is there,
// the hits before it are decided and stay counted, and n tells which it was.
//
// The keys of one step lie wherever the server puts them. Upstash has no slots; a Redis
// Cluster would refuse keys of different ones.
func (s *Store) TakeAll(ctx context.Context, hits []stores.Hit, out []stores.Decision) (n int, err error) {
	return s.TakeChain(ctx, hits, nil, nil, nil, out, nil)
}

// TakeChain is TakeAll for package failover; nobody else needs it. A refusal of hits[i]
// ends nothing if open[i] is true; hits[i] is taken as by TakeOwing with owed[i] and
// until[i]; and certain[i] is set as TakeCertain does. Each of these may be nil; those
// that are not must be as long as hits at least.
func (s *Store) TakeChain(ctx context.Context, hits []stores.Hit, open []bool, owed []int, until []time.Duration, out []stores.Decision, certain []bool) (n int, err error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	many := len(hits)
	if len(out) < many || open != nil && len(open) < many || certain != nil && len(certain) < many ||
		owed != nil && (len(owed) < many || len(until) < many) {
		return 0, fmt.Errorf("%w batch: upstash: %d hits, and less of what belongs to them", stores.ErrInvalid, many)
	}
	if many > maxBatch {
		return 0, fmt.Errorf("%w batch: upstash: %d hits: want at most %d", stores.ErrInvalid, many, maxBatch)
	}
	c := chain{Store: s, out: out, certain: certain, n: many}
	for i := range hits {
		a, err := s.check(hits[i])
		if err != nil {
			return 0, err
		}
		a.open = open != nil && open[i]
		if owed != nil {
			if err := a.owing(hits[i].Limit, owed[i], until[i]); err != nil {
				return 0, err
			}
		}
		c.add(asked{args: a, key: hits[i].Key, at: i})
	}
	if err := ctx.Err(); err != nil || many == 0 {
		return 0, err
	}
	return c.take(ctx)
}

// chain is a batch on its way.
type chain struct {
	*Store
	asked   []asked
	out     []stores.Decision
	certain []bool // may be nil
	n       int    // how many hits are decided when all that are asked about are, and none ended the chain
	ended   bool   // by a hit that can't pass
}

// add takes in the next hit. Of one that can't pass the answer is known.
func (c *chain) add(h asked) {
	switch {
	case c.ended:
	case !h.never():
		c.asked = append(c.asked, h)
	case !h.open:
		c.n, c.ended = h.at+1, true
	}
}

// take decides about the hits that are asked about. Where no script is run, those that
// INCR can count are still counted, one by one.
func (c *chain) take(ctx context.Context) (n int, err error) {
	for i := range c.n {
		c.decide(i, stores.Decision{}, false)
	}
	if len(c.asked) > 1 && !c.unscripted() {
		decided, err := c.takeScripted(ctx, c.asked)
		if decided > 0 || !c.asked[0].single() || !notRun(err) {
			return c.end(decided, err)
		}
		c.noScript.Store(c.clock.Now() + int64(quiet))
	}
	for i := range c.asked {
		h := &c.asked[i]
		if h.single() {
			err = c.takeSingle(ctx, h)
		} else {
			_, err = c.takeScripted(ctx, c.asked[i:i+1])
		}
		if err != nil {
			return c.end(i, err)
		}
		if c.ends(h) {
			return c.end(i+1, nil)
		}
	}
	return c.n, nil
}

// end returns how many hits of the chain are decided when so many are of those that were
// asked about.
func (c *chain) end(decided int, err error) (n int, _ error) {
	switch {
	case err != nil:
		return c.asked[decided].at, err
	case decided > 0 && c.ends(&c.asked[decided-1]):
		return c.asked[decided-1].at + 1, nil
	}
	return c.n, nil
}

// ends tells whether a hit that is decided is the last one.
func (c *chain) ends(h *asked) bool { return !c.out[h.at].Allowed && !h.open }

// unscripted tells that the server was just found to run no script, and that the chain
// can begin without.
func (c *chain) unscripted() bool {
	return c.asked[0].single() && c.clock.Now() < c.noScript.Load()
}

// notRun tells whether err says that the server or the token lets no script run.
func notRun(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Definite && f.KeyOnly && f.Lasting
}

func (c *chain) decide(at int, d stores.Decision, certain bool) {
	c.out[at] = d
	if c.certain != nil {
		c.certain[at] = certain
	}
}

func (c *chain) takeSingle(ctx context.Context, h *asked) error {
	d, certain, err := c.takeOne(ctx, h.key, h.args)
	if err == nil {
		c.decide(h.at, d, certain)
	}
	return err
}

// takeScripted has the script decide about hits of the chain. An error is about
// hits[decided].
func (c *chain) takeScripted(ctx context.Context, hits []asked) (decided int, err error) {
	sent := c.clock.Now()
	for i := range hits {
		if hits[i].way == counter {
			hits[i].seen = c.windows.find(hits[i].key, sent)
		}
	}
	rows, err := c.evaluate(ctx, take, hits)
	if len(rows) == 0 {
		return 0, err
	}
	if !soundChain(hits, rows, err != nil) {
		return 0, malformed("an answer to a script that makes no sense")
	}
	came := c.clock.Now()
	for ; len(rows) > 0; rows = rows[rowLength:] {
		h := &hits[decided]
		decided++
		if h.way != counter {
			c.decide(h.at, h.decision(rows), true)
			continue
		}
		o := ruling{args: h.args, reply: [3]int64(rows), sent: sent, came: came, seen: h.seen}.decide()
		c.learn(h.key, h.seen, o, came)
		c.decide(h.at, o.Decision, o.certain)
	}
	return decided, err
}

// soundChain tells whether these rows are what the script can answer to these hits. It
// goes on behind each of them but a refusal that ends the chain, behind which it does
// not.
func soundChain(hits []asked, rows []int64, failed bool) bool {
	for i := range hits {
		row, more := rows[:rowLength], len(rows) > rowLength || failed
		if !hits[i].sound(take, row) {
			return false
		}
		if row[0] == 0 && !hits[i].open {
			return !more
		}
		if rows = rows[rowLength:]; len(rows) == 0 {
			return failed || i == len(hits)-1
		}
	}
	return false
}
