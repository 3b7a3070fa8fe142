// Package upstash counts hits in Upstash Redis over its REST API, so that every
// instance of a serverless program sees the same counts. It needs net/http only:
// Upstash has no Go client for Redis, so the package carries its own small one.
//
// It serves all algorithms, with and without a block; a log of time stamps up to a
// quota of 1000.
//
// A hit of cost 1 in a [stores.FixedWindow] or a [stores.Cooldown] without a block goes by
// a pipeline of plain commands: INCR counts, PEXPIRE ... NX opens the window at
// the key's first hit and gives an expiry back to a key that lost its own, and PTTL
// tells the window's end. INCR's reply alone decides: there is no check before the
// count, so parallel hits of any number of instances never pass more than the quota.
// Hits beyond the quota raise the counter too, but count for nothing: what is used is
// min(counter, quota), and they never move the window's end.
//
// All else goes by one script, whose parts are the .lua files of this package: EVALSHA
// and, where the server does not have it, EVAL. Higher costs, refunds and debts work on
// that same plain counter. Of other limits the script keeps one string a key, and goes by
// the server's time, so that the clocks of instances do not matter. [Store.TakeAll]
// has it decide about several limits as one step, whatever their algorithms. It locks
// its keys alone; a server that does not know how, because it is not Upstash, gets it
// without.
//
// Upstash bills each command, those within a script too:
//
//	                                       opens a window  further  refused
//	fixed, cost 1                          3               2        2
//	fixed, higher costs and debts          3               4        3
//	fixed with a block, sliding, token,
//	leaky, log; any cost; debts            4               4        3
//
// By the pipeline a decision takes a third command while this instance does not know the
// end of the key's window. By the script a refusal that starts a block takes 4, as does
// one that pays a debt. In a chain of several limits EVALSHA and TIME count once: it
// takes 1, another 1 if one of its limits needs the time, 2 for each hit that opens a
// window or needs the time (1 if that is refused), and 3 for each further hit of a fixed
// window without a block (2 if refused). A refund takes 4, or 3 if it changes nothing, or,
// in a fixed window without a block, 2 if the key is not there. A look takes 2 there, and
// 3 else. Behind package failover a hit that is known to be refused takes none.
//
// A decision is one HTTP exchange, never repeated: an INCR whose answer was lost may
// have been counted. Only where the answer says that nothing was executed, since the
// server does not have the script, does a second one follow.
//
// Give the store a database of its own with eviction off, and a token that may do
// nothing else: `+incr +pexpire +pttl +get +set +del +time +evalsha +eval ~sallyport:*`.
// Eviction would forget these keys first, since they have an expiry. A token without the
// rights for scripts still serves hits of cost 1 in fixed windows without a block, one
// exchange each; package failover then decides about the others by itself, and the log
// says so.
//
// Sources: the REST API (https://upstash.com/docs/redis/features/restapi), its prices
// (https://upstash.com/docs/redis/sdks/ratelimit-ts/costs), the locks of scripts
// (https://upstash.com/docs/redis/features/key-locking), and the Redis commands INCR,
// PEXPIRE, PTTL, GET, SET, DEL, TIME, EVALSHA and EVAL (https://redis.io/docs/latest/commands).
package upstash
