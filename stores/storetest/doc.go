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
// Each algorithm has clauses of its own. Their answers are held, field by field,
// against a model that keeps the history of a key and knows no formula of a store's: it
// looks for the moment at which a hit has room. Quotas go up to 20 there, and costs to
// 10, so that a log of few stamps is tested too. A store may count windows in whole
// milliseconds: by two of them it may be off, and by one where it counts buckets or a
// log. The time that its own call takes is always allowed for.
//
// The package imports the standard library and package stores only.
package storetest
