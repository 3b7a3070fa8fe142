// Package upstash counts hits in Upstash Redis over its REST API, so that every
// instance of a serverless program sees the same counts. It needs net/http only:
// Upstash has no Go client for Redis, so the package carries its own small one.
//
// It serves [stores.FixedWindow] and [stores.Cooldown] without a block, by a pipeline
// of plain commands: INCR counts, PEXPIRE ... NX opens the window at the key's first
// hit and gives an expiry back to a key that lost its own, and PTTL tells the
// window's end. INCR's reply alone decides: there is no check before the count, so
// parallel hits of any number of instances never pass more than the quota. Hits
// beyond the quota raise the counter too, but count for nothing: what is used is
// min(counter, quota), and they never move the window's end.
//
// Upstash bills each command. A decision takes three, or two while this instance
// knows the end of the key's window. Behind package failover a key that is known to
// be refused takes none.
//
// A decision is one HTTP exchange, never repeated: an INCR whose answer was lost may
// have been counted.
//
// Give the store a database of its own with eviction off, and a token that may do
// nothing else: `+incr +pexpire +pttl +get +del ~sallyport:*`. Eviction would forget
// these keys first, since they have an expiry.
//
// Sources: the REST API (https://upstash.com/docs/redis/features/restapi) and the
// Redis commands INCR, PEXPIRE, PTTL, GET, DEL (https://redis.io/docs/latest/commands).
package upstash
