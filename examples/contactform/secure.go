package main

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"

	"github.com/sallyport/sallyport/handler/form"
)

// style is the one style sheet. It is inside the page, and the policy below lets in
// this one by its hash and no other.
const style = `
:root { color-scheme: light dark; --text: #1b1b1f; --page: #fbfbfd; --field: #fff; --line: #6b6b76; --accent: #0b57d0; --on-accent: #fff; --fault: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e6ea; --page: #17171a; --field: #202024; --line: #91919c; --accent: #a8c7fa; --on-accent: #0a2a5e; --fault: #f2b8b5; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 36rem; margin: 0 auto; padding: 2rem 1rem 3rem; }
h1 { margin: 0 0 .5rem; font-size: 1.75rem; line-height: 1.2; }
a { color: var(--accent); }
label { display: block; margin: 1.25rem 0 .25rem; font-weight: 600; }
input, textarea { display: block; width: 100%; padding: .625rem .75rem; border: 1px solid var(--line); border-radius: .375rem; background: var(--field); color: inherit; font: inherit; }
textarea { resize: vertical; }
[aria-invalid] { border: 2px solid var(--fault); }
.fault { margin: .25rem 0; color: var(--fault); }
button { margin-top: 1.5rem; min-height: 2.75rem; padding: .5rem 1.25rem; border: 0; border-radius: .375rem; background: var(--accent); color: var(--on-accent); font: inherit; font-weight: 600; cursor: pointer; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
@media (forced-colors: active) { button { border: 1px solid; } }
.trap { ` + form.OutOfSight + ` }
`

// contentSecurityPolicy allows what the pages need: their style, to send the form to
// where it came from, and the captcha, if there is one.
func contentSecurityPolicy(c captcha) string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'" + c.sources
}

// secure sets headers for every answer. It stands outside of the guard, whose
// refusals keep them.
func secure(next http.Handler, policy string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// sameOrigin answers 403 to a browser that another site made send the form. It
// stands outside of the guard, so that such a site can't use up its visitors'
// quota. Programs that are no browser pass. If your form is served from elsewhere,
// name that origin with AddTrustedOrigin.
func sameOrigin(next http.Handler) http.Handler {
	return http.NewCrossOriginProtection().Handler(next)
}
