// Package browser holds tests that visit the contact form of examples/contactform as a
// person does: with a real browser, a headless Chromium, by mouse and by keyboard, with
// script and without.
//
// They need Chromium (Debian: apt-get install chromium) and are skipped where there is
// none. The one that is refused can keep a picture of what it saw:
//
//	go test ./internal/browser -run TestVisitor -screenshot "$PWD/docs/contactform.png"
package browser
