package storetest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// builds are makes of store that all keep the contract.
var builds = map[string]build{
	"in one process":           {},
	"whole milliseconds":       {millis: true},
	"as Redis expires":         {expires: true},
	"as INCR counts":           {expires: true, overcount: true},
	"unsure at the first hits": {expires: true, overcount: true, straddles: true},
}

func TestRightStoresPassEveryClause(t *testing.T) {
	for name, b := range builds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				found, skipped := findings(t, sameStore(newReference("", b)))
				require.Empty(t, found)
				require.Empty(t, skipped, "the reference store has everything")
			})
		})
	}
}

// mutant is wrong in one thing, and the clause has to notice.
type mutant struct {
	bug    string
	clause string
	build  build
}

var mutants = []mutant{
	{"one hit too many", "fixed window/exactly the quota passes", build{}},
	{"one hit too few", "fixed window/exactly the quota passes", build{}},
	{"Remaining one too high", "fixed window/exactly the quota passes", build{}},
	{"Remaining goes negative", "fixed window/exactly the quota passes", build{}},
	{"Remaining as it was before the hit", "fixed window/exactly the quota passes", build{}},
	{"nobody counted", "fixed window/exactly the quota passes", build{}},
	{"reports a fault with a shared decision", "fixed window/exactly the quota passes", build{}},
	{"sets a Delay", "fixed window/exactly the quota passes", build{}},
	{"RetryAfter is 0 at a refusal", "fixed window/exactly the quota passes", build{}},
	{"RetryAfter on an allowed hit", "fixed window/exactly the quota passes", build{}},
	{"RetryAfter beyond the window", "fixed window/exactly the quota passes", build{}},
	{"ResetAfter is 0", "fixed window/exactly the quota passes", build{}},
	{"window aligned to the clock", "fixed window/the first hit opens the window, not the clock", build{}},
	{"RetryAfter is always the whole window", "fixed window/RetryAfter and ResetAfter name the end of the window", build{}},
	{"ResetAfter is always the whole window", "fixed window/RetryAfter and ResetAfter name the end of the window", build{}},
	{"window half as long", "fixed window/no hit passes before the window ends", build{}},
	{"never forgets", "fixed window/the whole quota is back in the next window", build{}},
	{"prolongs the window with refused hits", "fixed window/refused hits change nothing", build{}},
	{"prolongs the window with refused hits", "fixed window/a steady client gets its quota in every window", build{}},
	{"prolongs the window with every hit", "fixed window/a steady client gets its quota in every window", build{}},
	{"prolongs the window with every hit", "fixed window/a client slower than the limit is never refused", build{}},
	{"RetryAfter is rounded down", "fixed window/a client that waits RetryAfter gets in", build{}},
	{"RetryAfter is in seconds, rounded down", "fixed window/a client that waits RetryAfter gets in", build{}},
	{"checks, then acts", "parallel hits/exactly the quota passes", build{}},
	{"two may open a window", "parallel hits/exactly the quota passes", build{}},
	{"two may open a window", "parallel hits/exactly the quota passes after the window's end", build{}},
	{"checks, then acts", "parallel hits/costs together never exceed the quota", build{}},
	{"takes cost 0 for nothing", "cost/a hit takes its cost, and a cost of 0 is 1", build{}},
	{"counts refused costs", "cost/a refused cost leaves room for cheaper hits", build{}},
	{"counts a cost above the quota", "cost/a cost above the quota is refused at once and counts nothing", build{}},
	{"gives a hopeless refusal a RetryAfter", "cost/a cost above the quota is refused at once and counts nothing", build{}},
	{"adds costs without a look at overflow", "cost/a cost above the quota is refused at once and counts nothing", build{}},
	{"takes a quota of 0 for no limit", "hit/an invalid hit is ErrInvalid and counts nothing", build{}},
	{"does not validate the key", "hit/an invalid hit is ErrInvalid and counts nothing", build{}},
	{"allows a cost below 0", "hit/an invalid hit is ErrInvalid and counts nothing", build{}},
	{"returns another error for invalid hits", "hit/an invalid hit is ErrInvalid and counts nothing", build{}},
	{"counts what is invalid", "hit/an invalid hit is ErrInvalid and counts nothing", build{}},
	{"refuses the longest key", "hit/the bounds themselves are valid", build{}},
	{"counts in 32-bit floats", "hit/the largest quota is counted exactly", build{}},
	{"ignores a done context", "context/a cancelled context returns its error and counts nothing", build{}},
	{"counts though the context is done", "context/a cancelled context returns its error and counts nothing", build{}},
	{"wraps the context's error", "context/a cancelled context returns its error and counts nothing", build{}},
	{"heeds cancellation but no deadline", "context/a deadline that has passed returns its error and counts nothing", build{}},
	{"one counter for all keys", "key/keys are counted apart", build{}},
	{"folds keys to lower case", "key/keys that differ in one character are counted apart", build{}},
	{"trims keys", "key/keys that differ in one character are counted apart", build{}},
	{"takes a key up to its first brace", "key/keys that differ in one character are counted apart", build{}},
	{"cuts keys at 255 bytes", "key/keys of 512 bytes that differ in one are counted apart", build{}},
	{"keeps the first quota", "quota/a raised quota applies at once and keeps what was counted", build{}},
	{"starts anew with another quota", "quota/a raised quota applies at once and keeps what was counted", build{}},
	{"starts anew with another quota", "quota/a lowered quota applies at once and keeps what was counted", build{}},
	{"another quota moves the end", "quota/another quota does not move the window's end", build{}},
	{"Supports says yes to all", "Supports/Supports and Take agree", build{fixedOnly: true}},
	{"Supports says no to all", "Supports/a fixed window is always supported", build{}},
	{"Peek counts", "Peek/Peek counts nothing", build{}},
	{"Peek always allows", "Peek/Peek answers as Take would", build{}},
	{"Peek tells what remains after the hit", "Peek/Peek answers as Take would", build{}},
	{"Peek opens a window", "Peek/Peek opens no window and prolongs none", build{}},
	{"Peek prolongs a window", "Peek/Peek opens no window and prolongs none", build{}},
	{"Reset keeps the count", "Reset/Reset forgets the key, for all instances", build{}},
	{"Reset heeds the cost", "Reset/Reset forgets the key, for all instances", build{}},
	{"Reset forgets everybody", "Reset/Reset forgets no other key", build{}},
	{"Reset keeps the window", "Reset/after Reset the next hit opens a new window", build{}},
	{"Reset of a missing key is an error", "Reset/Reset of a key that is not there is no error", build{}},
	{"Refund gives nothing back", "Refund/Refund gives the cost back", build{}},
	{"Refund gives 1 back", "Refund/Refund gives the cost back", build{}},
	{"Refund gives back from what was refused too", "Refund/Refund gives the cost back", build{overcount: true}},
	{"Refund goes below zero", "Refund/Refund never goes below zero used", build{}},
	{"Refund of a missing key is an error", "Refund/Refund of a key that is not there opens no window", build{}},
	{"Refund opens a window", "Refund/Refund of a key that is not there opens no window", build{}},
	{"Refund of a missing key is credit", "Refund/Refund of a key that is not there opens no window", build{}},
	{"Refund opens a window", "Refund/after the window's end Refund gives nothing", build{}},
	{"Refund of a missing key is credit", "Refund/after the window's end Refund gives nothing", build{}},
	{"Refund prolongs the window", "Refund/Refund moves no window's end", build{}},
	{"a refund is lost when two refund at once", "Refund/parallel refunds all count, and never go below zero", build{}},
	{"Refund goes below zero", "Refund/parallel refunds all count, and never go below zero", build{}},
	{"TakeAll wants out as long as hits", "TakeAll/TakeAll takes every hit when all are allowed", build{}},
	{"TakeAll changes the hits", "TakeAll/TakeAll takes every hit when all are allowed", build{}},
	{"TakeAll charges behind a refusal", "TakeAll/TakeAll stops at the first refusal and charges none behind it", build{}},
	{"TakeAll goes on behind a refusal", "TakeAll/TakeAll stops at the first refusal and charges none behind it", build{}},
	{"TakeAll takes back what came before a refusal", "TakeAll/TakeAll stops at the first refusal and charges none behind it", build{}},
	{"TakeAll does not count the refusal in n", "TakeAll/TakeAll stops at the first refusal and charges none behind it", build{}},
	{"TakeAll counts a key once", "TakeAll/TakeAll counts a key that it holds twice, twice", build{}},
	{"TakeAll goes on behind an error", "TakeAll/TakeAll leaves what is behind an invalid hit uncounted", build{}},
	{"TakeAll charges behind a refusal", "TakeAll/parallel TakeAlls pass exactly the quota", build{}},
	{"checks, then acts", "TakeAll/parallel TakeAlls pass exactly the quota", build{}},
	{"a payment is forgotten", "TakeOwing/TakeOwing takes what is owed, then the hit", build{}},
	{"a payment lifts the level above the quota", "TakeOwing/a payment never lifts a level above the quota", build{}},
	{"a payment overflows", "TakeOwing/a payment never lifts a level above the quota", build{}},
	{"a payment is lost with a refused hit", "TakeOwing/a payment stands although the hit is refused", build{}},
	{"a payment opens a whole window", "TakeOwing/a window that a payment opens ends after until", build{}},
	{"a payment moves the end", "TakeOwing/no payment moves the end of a window", build{}},
	{"a payment is lost when two pay at once", "TakeOwing/parallel payments are all taken", build{}},
	{"counts refused costs", "script/one script of mixed steps has one meaning on every store", build{}},
}

func TestEachMutantIsCaughtByItsClause(t *testing.T) {
	clauses := map[string]clause{}
	for _, g := range contract() {
		for _, cl := range g.clauses {
			clauses[g.name+"/"+cl.name] = cl
		}
	}
	caught := map[string]bool{}
	for _, m := range mutants {
		caught[m.clause] = true
		require.Contains(t, clauses, m.clause)
		t.Run(m.bug+" by "+m.clause, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 1
				if m.clause == random {
					tries = 50
				}
				var r *recorder
				for range tries {
					r = &recorder{TB: t}
					clauses[m.clause].run(r, sameStore(newReference(m.bug, m.build)), newKeys())
					if len(r.failures) > 0 {
						break
					}
				}
				require.NotEmpty(t, r.failures)
				require.NotContains(t, r.failures[0], "took too long", "noticed, not given up")
				t.Log(r.failures)
			})
		})
	}
	for name := range clauses {
		require.True(t, caught[name], "no mutant proves the clause %s", name)
	}
}

// TestPrivateCountsAreCaught is about instances that each count for themselves.
func TestPrivateCountsAreCaught(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		found, _ := findings(t, Backend{Open: func(testing.TB) stores.Store { return newReference("", build{}) }})
		for _, clause := range []string{
			"fixed window/exactly the quota passes",
			"parallel hits/exactly the quota passes",
			"parallel hits/costs together never exceed the quota",
			"Reset/Reset forgets the key, for all instances",
		} {
			require.Contains(t, found, clause)
		}
	})
}

// TestWhatIsLeftOutIsSkipped has a store with nothing but Take and a cost of 1.
func TestWhatIsLeftOutIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		found, skipped := findings(t, sameStore(takeOnly{newReference("", build{fixedOnly: true})}))
		require.Empty(t, found)
		for _, g := range contract() {
			for _, cl := range g.clauses {
				name := g.name + "/" + cl.name
				switch g.name {
				case "Peek", "Reset", "Refund", "TakeAll", "TakeOwing", "script":
					require.Contains(t, skipped, name)
				case "fixed window", "context", "key", "quota":
					require.NotContains(t, skipped, name)
				}
			}
		}
	})
}

// TestUnsupportedMethodsAreSkipped has a store with every method, as a wrapper has,
// and nothing behind the optional ones.
func TestUnsupportedMethodsAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		found, skipped := findings(t, sameStore(hollow{takeOnly{newReference("", build{})}}))
		require.Empty(t, found)
		require.Contains(t, skipped, "Refund/parallel refunds all count, and never go below zero")
		require.Contains(t, skipped, "TakeAll/parallel TakeAlls pass exactly the quota")
		require.Contains(t, skipped, "TakeOwing/parallel payments are all taken")
	})
}

// TestAFixedWindowIsNotOptional: the one thing that ErrUnsupported does not excuse.
func TestAFixedWindowIsNotOptional(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		found, _ := findings(t, sameStore(takeOnly{refuser{}}))
		for _, cl := range windowClauses {
			require.Contains(t, found, "fixed window/"+cl.name)
		}
	})
}

func sameStore(s stores.Store) Backend {
	return Backend{Open: func(testing.TB) stores.Store { return s }}
}

// findings runs every clause and returns what each found, by group and name.
func findings(t testing.TB, b Backend) (failed, skipped map[string]string) {
	failed, skipped = map[string]string{}, map[string]string{}
	keys := newKeys()
	for _, g := range contract() {
		for _, cl := range g.clauses {
			r := &recorder{TB: t}
			cl.run(r, b, keys)
			name := g.name + "/" + cl.name
			if len(r.failures) > 0 {
				failed[name] = strings.Join(r.failures, "\n")
			}
			if r.skipped != "" {
				skipped[name] = r.skipped
			}
		}
	}
	return failed, skipped
}

// recorder keeps what a clause would have reported.
type recorder struct {
	testing.TB
	failures []string
	skipped  string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
