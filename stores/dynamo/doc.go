// Package dynamo counts hits in a DynamoDB table, by conditional UpdateItem.
//
// The table has one string hash key, [KeyAttribute], and time to live enabled on
// [TTLAttribute]. A decision is one UpdateItem in the common case: one for a key
// that this instance knows or that is new or exhausted, two where it guessed wrongly
// what is kept of the key, and one more for the refusal that starts a block. A condition
// that fails comes back with the item and is a decision like any other, with an exact
// RetryAfter. To count needs the right dynamodb:UpdateItem alone; Peek needs GetItem and
// Reset needs DeleteItem. Nothing asks for DescribeTable. DynamoDB bills a refused hit as
// one write too. What was let through elsewhere and is paid with a hit (TakeOwing) goes
// with it in one write.
//
// # Limits
//
// All limits are served, a log up to a quota of 100. An item is about a hundred bytes, and
// that of a log about twelve more for each unit of its quota: from about eighty on it is
// over a kilobyte, and DynamoDB bills two writes for it.
//
// Whatever the limit, a hit is one write with a condition that leaves the arithmetic to
// its values, so that hits of many instances add up and never wait for one another: a
// count with the window's end, two counts, the time at which a bucket is whole again
// (GCRA, ITU-T I.371). A log has a slot for each unit of its quota, and a hit claims free
// ones at random; while many claim slots at once some meet and try again, twelve calls
// at most.
//
// A block is an attribute that every hit's condition asks for. It is started by a second
// call, since only the refusal tells that it is due. If that call fails, the refusal
// stands, without a block.
//
// # Retries
//
// UpdateItem is not idempotent, and the SDK resends by itself after a lost answer: one
// hit can then count three times. Whatever client a Store is given, its calls resend
// only what was certainly never carried out: a connection that could not be made
// or that broke before the request was on it, and a request that the server turned
// away for its signature's time. A hit whose answer was lost is an error that
// may have been counted, once. The start of a block alone is tried a second time: what
// the first call began, the second one finds.
//
// # Clocks
//
// All ends by the callers' wall clocks, since a condition has no clock of its own.
// When two answers in a row carry a Date header over two seconds off the
// local clock, that clock is corrected by it and the fact is logged. Between instances
// that differ by less, a window ends by the clock of the instance that opened it: one
// whose clock is behind refuses for the difference longer than it said, never
// shorter, because a window that each instance could shorten would be none. Of what an
// exhausted key regains bit by bit (sliding, log, token, leaky) the instance whose clock
// is ahead gets the most; the total stays what it is. Only an end
// more than five seconds beyond the longest possible, the work of a clock that was
// far ahead, is moved to where it would be if it were written now, with the count kept:
// by the first instance that is refused because of it and whose clock agrees with the
// server's. So whoever waits RetryAfter gets in, or is told to wait for the few seconds
// that two clocks differ.
//
// # Tables
//
// One table serves one Region: a global table replicates late and can't hold one limit
// across Regions. A local engine gets its table from [CreateTable]; in production
// the table belongs into the template.
package dynamo
