// Package failover asks a shared store first, and this process's memory only when
// that failed: a hit is counted by one of them, never by both.
//
// It sees to what goes wrong around a shared store. A call has a deadline that no
// client can shorten by hanging up. After a run of failures a circuit breaker
// spares requests the wait, and lets one request at a time probe whether the store
// is back. A refusal that the store gave is remembered for as long as it surely
// holds, so that a client that hammers costs nearly no calls. A refusal is an
// answer, never a failure.
//
// Memory goes on from what the shared store last said of a key. What it lets through
// while the shared store certainly did not count is told to it later, with the next
// hit on that key, if it is a stores.Debtor; for what may have been counted, this
// instance itself keeps to the quota until the window ends.
//
// There is no goroutine and no timer: an instance may be frozen between requests.
package failover
