package storetest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// clause is one sentence of the contract and how to find out whether it is kept.
type clause struct {
	name  string
	check func(*check)
}

// group is what the clauses of one file have in common.
type group struct {
	name    string
	clauses []clause
}

func contract() []group {
	return []group{
		{"fixed window", windowClauses},
		{"parallel hits", parallelClauses},
		{"cost", costClauses},
		{"hit", hitClauses},
		{"context", contextClauses},
		{"key", keyClauses},
		{"quota", quotaClauses},
		{"Supports", supportClauses},
		{"Peek", peekClauses},
		{"Reset", resetClauses},
		{"Refund", refundClauses},
		{"TakeAll", batchClauses},
		{"TakeOwing", debtClauses},
		{"script", scriptClauses},
		slidingForm.group(slidingClauses...),
		logForm.group(logClauses...),
		tokenForm.group(tokenClauses...),
		leakyForm.group(leakyClauses...),
		{"block", blockClauses},
		{"algorithms together", append(mixedBatchClauses, randomClauses...)},
	}
}

// run runs the clause on a goroutine of its own, so that what ends the clause ends
// no other.
func (cl clause) run(tb testing.TB, b Backend, keys *keys) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		cl.check(newCheck(tb, b, keys))
	}()
	<-done
}

// long is the window of the clauses in which none ends.
const long = time.Hour

// keys makes keys that no other run and no other case has.
type keys struct {
	prefix string
	mu     sync.Mutex
	last   int
}

func newKeys() *keys { return &keys{prefix: "storetest:" + rand.Text() + ":"} }

func (k *keys) next() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last++
	return fmt.Sprintf("%s%06d", k.prefix, k.last)
}

// check is a clause being checked.
type check struct {
	testing.TB
	backend Backend
	keys    *keys
	passage passage
	took    time.Duration // by the latest call that made a decision
}

func newCheck(tb testing.TB, b Backend, keys *keys) *check {
	return &check{TB: tb, backend: b, keys: keys}
}

func (c *check) open() stores.Store {
	c.Helper()
	s := c.backend.Open(c.TB)
	if s == nil {
		c.Fatalf("Backend.Open returned nil")
	}
	return s
}

func (c *check) openMany(n int) []stores.Store {
	c.Helper()
	all := make([]stores.Store, n)
	for i := range all {
		all[i] = c.open()
	}
	return all
}

// fixed returns a hit of cost 1 on a fresh key.
func (c *check) fixed(quota int, window time.Duration) stores.Hit {
	return stores.Hit{Key: c.keys.next(), Limit: stores.FixedWindow(quota, window)}
}

// costing returns h with another cost.
func costing(h stores.Hit, cost int) stores.Hit {
	h.Cost = cost
	return h
}

// withQuota returns h with another quota.
func withQuota(h stores.Hit, quota int) stores.Hit {
	h.Limit.Quota = quota
	return h
}

func describe(h stores.Hit) string {
	if h.Cost > 1 {
		return fmt.Sprintf("%v cost %d", h.Limit, h.Cost)
	}
	return h.Limit.String()
}

// must ends the clause if err is not nil: as skipped where the store may leave out
// what was asked of it, else as failed.
func (c *check) must(method string, h stores.Hit, err error) {
	c.Helper()
	switch {
	case err == nil:
	case errors.Is(err, errors.ErrUnsupported) && optional(method, h):
		c.Skipf("%s %s: %v", method, describe(h), err)
	default:
		c.Fatalf("%s %s: error %q: want a decision", method, describe(h), err)
	}
}

func optional(method string, h stores.Hit) bool {
	return method != "Take" || h.Limit.Algorithm != stores.Fixed || h.Limit.Block != 0 || h.Cost > 1
}

// take is Take, with all that holds for every decision already checked.
func (c *check) take(s stores.Store, h stores.Hit) stores.Decision {
	c.Helper()
	return c.decide("Take", h, func() (stores.Decision, error) { return s.Take(c.Context(), h) })
}

func (c *check) decide(method string, h stores.Hit, call func() (stores.Decision, error)) stores.Decision {
	c.Helper()
	start := time.Now()
	d, err := call()
	c.took = time.Since(start)
	c.must(method, h, err)
	c.judge(method, h, d)
	return d
}

// allow takes h and wants it allowed with so much remaining.
func (c *check) allow(s stores.Store, h stores.Hit, remaining int) stores.Decision {
	c.Helper()
	d := c.take(s, h)
	c.want("Take", h, d, true, remaining)
	return d
}

// refuse takes h and wants it refused with so much remaining.
func (c *check) refuse(s stores.Store, h stores.Hit, remaining int) stores.Decision {
	c.Helper()
	d := c.take(s, h)
	c.want("Take", h, d, false, remaining)
	return d
}

// fill takes hits of cost 1 and wants the room that is left, exactly: Remaining
// counts down to 0, then comes a refusal.
func (c *check) fill(s stores.Store, h stores.Hit, room int) {
	c.Helper()
	for left := room - 1; left >= 0; left-- {
		c.allow(s, h, left)
	}
	c.refuse(s, h, 0)
}
