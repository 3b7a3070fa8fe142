// Package storetest is the contract of package stores as tests: what every
// [stores.Store] has to do, ours or your own, whatever it keeps its counts in.
//
//	func TestConformance(t *testing.T) {
//		server := startServer(t)
//		storetest.Run(t, storetest.Backend{
//			Open: func(t testing.TB) stores.Store { return open(t, server) },
//		})
//	}
//
// Each clause of the contract is a subtest, named so that its name says what was
// broken. Polite traffic is the lesser part of them: the clauses hit from many
// instances at once, hit on after a refusal, hang up, overdraw, and then look
// whether the limit still holds and whether the client gets back in when it was
// told to.
//
// What is optional is tested where it is there: a store that lacks [stores.Peeker],
// or answers with an error that wraps [errors.ErrUnsupported], skips those clauses.
// A fixed window with a cost of 1 is not optional.
//
// The package imports the standard library and package stores only.
package storetest
