// Package memory is a store that counts in this process: what a guard falls back
// to when the shared store fails, what tests use, and enough for a service that
// runs as one instance.
//
// It holds a fixed number of keys at most, in constant time per hit and without
// allocating, whatever the load. When it is full it forgets first who has used
// least, and last whoever has used up a quota: an offender is not forgiven because
// he, or somebody else, floods the store with other keys. There is no goroutine, no
// timer and no sweep, so that nothing depends on an instance that may be frozen.
package memory
