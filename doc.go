// Package sallyport holds no code: it is where the kit's documentation begins, and
// where the tests that tie its papers to its code live.
//
// Sallyport keeps public serverless endpoints (forms, webhooks, small APIs) cheap
// and honest under abuse. Each hit is counted by a store that all instances share;
// when that fails, by the instance's own bounded memory; and never by both.
//
//   - [github.com/sallyport/sallyport/handler]: the guard, its policies and its
//     answers, around any http.Handler
//   - [github.com/sallyport/sallyport/lambda]: the same guard around Lambda handlers
//   - [github.com/sallyport/sallyport/stores]: the contract, limits and keys
//   - [github.com/sallyport/sallyport/stores/upstash],
//     [github.com/sallyport/sallyport/stores/dynamo]: the shared stores
//   - [github.com/sallyport/sallyport/stores/failover],
//     [github.com/sallyport/sallyport/stores/memory]: what happens without them
//   - [github.com/sallyport/sallyport/stores/storetest]: the contract as tests, for a
//     store of your own
//
// The README says how to begin; each package has an example that runs.
package sallyport
