package storetest

import (
	"runtime"
	"testing"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// Backend is what the clauses run against.
type Backend struct {
	// Open returns one more instance over the same data, as another process would
	// have it: what one instance counts, all of them see. It is called often, and
	// many instances are in use at once; a store that keeps its counts in the process
	// returns the same one each time. It runs on the goroutine of the test, so it may
	// call t.Fatal, t.Skip and t.Cleanup. Required.
	Open func(t testing.TB) stores.Store

	// Sleep lets that much time pass for the backend and for all instances; a part of
	// a millisecond counts too. It is called with no hit under way. Nil means
	// time.Sleep: then time is real, or the fake one of a synctest bubble.
	Sleep func(time.Duration)
}

// Run tests the store behind b, one subtest for each clause of the contract.
//
// Keys are fresh for each case and each run, so a backend may be shared and need
// not be empty. In real time a run takes some forty seconds for a store that serves
// every limit, and ten for fixed windows alone. No clause depends on how fast the
// machine is: one that could not be judged, because a window had ended meanwhile, is
// tried again with a longer window, so a slow backend takes minutes.
//
// Run may be called inside a [testing/synctest] bubble, and there it takes no time.
// A bubble has no subtests, so the clauses run there one after the other, a failure
// names its clause, and what is skipped is only logged.
func Run(t *testing.T, b Backend) {
	t.Helper()
	if b.Open == nil {
		t.Fatal("storetest: Backend.Open is nil")
	}
	keys := newKeys()
	if inBubble(t) {
		for _, g := range contract() {
			for _, cl := range g.clauses {
				cl.run(&bubbled{TB: t, clause: g.name + "/" + cl.name}, b, keys)
			}
		}
		return
	}
	for _, g := range contract() {
		t.Run(g.name, func(t *testing.T) {
			for _, cl := range g.clauses {
				t.Run(cl.name, func(t *testing.T) { cl.check(newCheck(t, b, keys)) })
			}
		})
	}
}

// inBubble finds out by the one call that a bubble forbids and that does nothing
// elsewhere. Package synctest does not say where one is.
func inBubble(t *testing.T) (bubble bool) {
	defer func() { bubble = recover() != nil }()
	t.Deadline()
	return false
}

// bubbled stands in for the subtest that a bubble can't have: it names the clause,
// and ends the clause alone.
type bubbled struct {
	testing.TB
	clause string
}

func (b *bubbled) Errorf(format string, args ...any) {
	b.Helper()
	b.TB.Errorf(b.clause+": "+format, args...)
}

func (b *bubbled) Fatalf(format string, args ...any) {
	b.Helper()
	b.Errorf(format, args...)
	runtime.Goexit()
}

func (b *bubbled) Skipf(format string, args ...any) {
	b.Helper()
	b.Logf(b.clause+": skipped: "+format, args...)
	runtime.Goexit()
}
