// Package webhook is what a webhook needs besides counting: it verifies signatures on
// the raw body, sees to it that a delivery is handled once, and limits each sender
// without letting anybody else use up his limit.
//
// A [Receiver] does it in this order:
//
//  1. It reads the body, up to Config.MaxBody (413) and for ten seconds at most (408).
//  2. It verifies the signature, whoever sent what before. A delivery that fails gets
//     401; a source that fails more than ten times in a minute gets 429 instead. That
//     is counted in this instance's memory alone and heeded for bad signatures alone,
//     so that no flood of forgeries, from wherever it claims to come, costs a store a
//     call or a real sender a delivery.
//  3. It claims the delivery's id: 200 without handling if it was handled, 409 with
//     Retry-After while it is being handled, 503 if the marks can't be had.
//  4. It asks Config.Valid. That comes behind the marks, so that a delivery that is
//     replayed does not use up the quota of the sender who made it.
//  5. It runs the handler: 200, or 500 after an error, and then the sender may try again.
//
// # What the marks promise
//
// A delivery has two marks in Config.Marks. The busy mark is taken before the handler
// runs and ends by itself 35 seconds after the delivery came; the handler's context
// ends after 30. The done mark is written when the handler returned nil and stays for
// Config.Replay. A handler that fails or panics takes the busy mark back. (An instance
// that was told of the mark may still answer 409 by it for 17 seconds, from memory.)
//
// So no event is lost: an instance that dies leaves a busy mark, which refuses
// (never with a 2xx, which would end the sender's attempts) and ends. And an event is
// handled once, but for three cases in which the handler may run again: the
// instance dies after the handler returned and before the done mark is written; the
// done mark can't be written; the handler ignores the end of its context for longer than
// the busy mark lasts. In the second case the answer is 200 all the same: a 500 would
// make the sender repeat for certain what was carried out, while after a 200 only
// somebody else's replay could, and the instance that handled it still knows it for five
// minutes. A handler that must never run twice needs a transaction of its own.
//
// Marks are as good as where they live. In an outage of a shared store nothing is
// handled (503): one instance's memory is no mark for the others, and senders try
// again. A guard over memory alone is right for one instance only.
//
// # What a sender hears
//
// A sender that hangs up ends nothing: his delivery is handled to its end, and his next
// attempt gets the 200. Without that a sender who waits three seconds would never see a
// handler that takes four succeed.
//
// Why a signature was refused is told to nobody, and what a handler's error says is
// neither answered nor logged: log it where it arises.
package webhook
