// Package upstash counts hits in Upstash Redis over its REST API, so that every
// instance of a serverless program sees the same counts. It needs net/http only:
// Upstash has no Go client for Redis, so the package carries its own small one.
//
// It serves [stores.FixedWindow] and [stores.Cooldown] without a block. A hit of cost 1
// goes by a pipeline of plain commands: INCR counts, PEXPIRE ... NX opens the window at
// the key's first hit and gives an expiry back to a key that lost its own, and PTTL
// tells the window's end. INCR's reply alone decides: there is no check before the
// count, so parallel hits of any number of instances never pass more than the quota.
// Hits beyond the quota raise the counter too, but count for nothing: what is used is
// min(counter, quota), and they never move the window's end.
//
// Higher costs, refunds and debts go by a script on the same counter, fixed.lua: EVALSHA
// and, where the server does not have it, EVAL. It locks its key alone; a server that
// does not know how, because it is not Upstash, gets it without.
//
// Upstash bills each command, those within a script too. By the pipeline a decision
// takes three, or two while this instance knows the end of the key's window. By the
// script it takes four, or three if it opens the window or is a refusal that pays
// nothing; so does a refund, or two if the key is not there. Behind package failover a
// hit that is known to be refused takes none.
//
// A decision is one HTTP exchange, never repeated: an INCR whose answer was lost may
// have been counted. Only where the answer says that nothing was executed, since the
// server does not have the script, does a second one follow.
//
// Give the store a database of its own with eviction off, and a token that may do
// nothing else: `+incr +pexpire +pttl +get +set +del +evalsha +eval ~sallyport:*`. Eviction
// would forget these keys first, since they have an expiry. A token without the rights
// for scripts still serves hits of cost 1; package failover then decides about the others
// by itself, and the log says so.
//
// Sources: the REST API (https://upstash.com/docs/redis/features/restapi), its prices
// (https://upstash.com/docs/redis/sdks/ratelimit-ts/costs), the locks of scripts
// (https://upstash.com/docs/redis/features/key-locking), and the Redis commands INCR,
// PEXPIRE, PTTL, GET, SET, DEL, EVALSHA and EVAL (https://redis.io/docs/latest/commands).
package upstash
