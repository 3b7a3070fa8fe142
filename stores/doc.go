// Package stores is the contract between what decides about requests and what
// counts them.
//
// A [Limit] says how much is allowed, a [Hit] is one event to be counted under a
// key, and a [Store] answers it with a [Decision] in one atomic step: a check
// followed by a count in two steps is the race that lets a hundred parallel
// requests through a limit of five. A refusal is a Decision, never an error; an
// error means that the store did not decide.
//
// The stores of this module serve every limit that a Limit can describe, and mean the
// same by it, but for the quotas of a [SlidingLog], of which each names the largest.
// What a store can't serve it refuses when a guard is made, by [Supporter].
//
// What a store offers beyond Take it says by the optional interfaces
// ([Batcher], [Peeker], [Resetter], [Refunder], [Debtor], [Supporter]). Package
// storetest holds the tests that every implementation has to pass.
//
// The package imports the standard library only.
package stores
