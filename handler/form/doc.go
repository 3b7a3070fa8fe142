// Package form keeps programs from filling in a form that is for people: a field
// that nobody sees, a signed token that says when the page was made, a limit by
// [handler.Guard], and, if that is not enough, a captcha.
//
// None of it asks a person for anything until the captcha. Show [Form.Fields] inside
// the form and put [Form.Handler] around what takes it:
//
//	f, err := form.New(form.Config{ID: "contact", Secret: secret, Guard: guard})
//	mux.Handle("POST /contact", f.Handler(contact))
//
// # Order
//
// What is cheap and local comes first, what is remote last. The body is read, up to
// a bound. A filled honeypot, a token that this form did not sign and one that comes
// back too fast are a program's: it gets the Decoy, and nothing is counted or asked.
// Then the Guard counts. A token that is too old is a person's who took long. Then one
// use of the token is counted, behind the Guard so that a client whom it refuses can't
// write to the store by sending ever new tokens. Then comes the captcha, and then the
// form's handler.
//
// # Programs and people
//
// A program should not learn that it was found out, so the Decoy should be the very
// handler that answers a success: status, headers and body are then the same, because
// an accepted post carries no RateLimit fields either. (What stays: the Decoy is faster,
// and it never becomes a 429.)
//
// A person must never be dropped in silence. One whose token is too old or used up, or
// whose captcha has expired, is told so, with a fresh token and what was typed: see
// Config.Again.
//
// # What it is not
//
// A program that is written for this very form gets through all but Guard and captcha:
// it loads the page, waits, and leaves the honeypot empty. A token is not bound to a
// visitor, so it is no protection against cross-site requests: that is
// [net/http.CrossOriginProtection]. And the server's own timeouts have to bound how
// long a body may take.
package form
