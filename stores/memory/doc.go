// Package memory is a store that counts in this process: what a guard falls back
// to when the shared store fails, what tests use, and enough for a service that
// runs as one instance.
//
// It serves every limit. It holds a fixed number of keys at most, in constant time per
// hit and without allocating, whatever the load. When it is full it forgets first who has
// used least, and last whoever has used up a quota or is blocked: an offender is not
// forgiven because he, or somebody else, floods the store with other keys. There is no
// goroutine, no timer and no sweep, so that nothing depends on an instance that may be
// frozen.
//
// A fixed window without a block is counted to the nanosecond, all else to the
// microsecond. A log (stores.SlidingLog) is exact: it keeps a time stamp for each hit, and
// hits of one microsecond share one. Its keys are dearer for that: up to seven stamps
// take as much room as a key. So an attacker has less to send to fill the store with them, and
// where the quota is large a sliding window protects better than a log.
package memory
