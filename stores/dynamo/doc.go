// Package dynamo counts hits in a DynamoDB table, by conditional UpdateItem.
//
// The table has one string hash key, [KeyAttribute], and time to live enabled on
// [TTLAttribute]. A decision is one UpdateItem in the common case: one for a key
// that this instance knows or that is new or exhausted, two where it guessed wrongly
// whether the key's window is open. A condition that fails comes back with the item
// and is a decision like any other, with an exact RetryAfter. To count needs the
// right dynamodb:UpdateItem alone; Peek needs GetItem and Reset needs DeleteItem.
// Nothing asks for DescribeTable. DynamoDB bills a refused hit as one write too. What was
// let through elsewhere and is paid with a hit (TakeOwing) goes with it in one write.
//
// # Retries
//
// UpdateItem is not idempotent, and the SDK resends by itself after a lost answer: one
// hit can then count three times. Whatever client a Store is given, its calls resend
// only what was certainly never carried out: a connection that could not be made
// or that broke before the request was on it, and a request that the server turned
// away for its signature's time. A hit whose answer was lost is an error that
// may have been counted, once.
//
// # Clocks
//
// Windows end by the callers' wall clocks, since a condition has no clock of its own.
// When two answers in a row carry a Date header over two seconds off the
// local clock, that clock is corrected by it and the fact is logged. Between instances
// that differ by less, a window ends by the clock of the instance that opened it: one
// whose clock is behind refuses for the difference longer than it said, never
// shorter, because a window that each instance could shorten would be none. Only an end
// more than five seconds beyond the longest possible, the work of a clock that was
// far ahead, is moved to a whole window from now, with the count kept: by the first instance that
// is refused because of it and whose clock agrees with the server's. So whoever
// waits RetryAfter gets in, or is told to wait for the few seconds that two clocks differ.
//
// # Tables
//
// One table serves one Region: a global table replicates late and can't hold one limit
// across Regions. A local engine gets its table from [CreateTable]; in production
// the table belongs into the template.
package dynamo
