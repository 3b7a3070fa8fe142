// Package handler puts limits in front of HTTP handlers: Cloud Run, any other
// server of net/http, and, through package lambda, AWS Lambda.
//
// A [Guard] asks its policies about each request. A [Policy] is a named
// [stores.Limit] with a [Key] that tells whose requests are counted together, and a
// [Mode] that tells what a refusal does. What the guard makes of a request is a
// [Verdict]; a refusal is answered with 429, Retry-After, and a problem document or
// a short page for people.
//
// Policies are asked in the order given. Put first those keyed on who asks (address,
// API key), then those on what is asked for (account, e-mail), then those for
// everyone: a caller who is refused is not charged by the policies behind, so he
// does not use up what others share.
//
// [ByForm] and [ByJSON] read the body before any store is asked, up to
// Config.BodyLimit, and the handler gets it again. What two readers might read
// differently is refused, and [KeyValue] gives the handler the value that was counted.
// [ParsePolicies], [ParseKey] and [ParseClientIP] read configuration from text.
//
// A request is never let through uncounted because something about it is odd: one
// without the identity that a key looks for is counted by its address, one whose
// address can't be proven by its peer's, one without any together with its like; and
// a store that returns an error instead of a decision makes a 503.
package handler
