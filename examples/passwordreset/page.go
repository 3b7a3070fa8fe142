package main

import (
	"fmt"
	"net/http"
)

// fields is the form. maxlength counts characters, and an address has no more of them
// than bytes.
var fields = fmt.Sprintf(`<form action="/reset" method="post">
<p><label for="email">E-mail</label>
<input id="email" name="email" type="email" autocomplete="email" maxlength="%d" required></p>
<p><button type="submit">Send me a link</button></p>
</form>
`, maxAddress)

// showForm answers GET /.
func showForm(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, "<p>We send you a link by which you can choose a new password.</p>\n"+fields)
}

// writePage answers with a sentence. It is never one that repeats what was typed.
func writePage(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Cache-Control", "no-store")
	write(w, status, "<p role=\"status\">"+text+"</p>\n<p><a href=\"/\">Back to the form</a></p>\n")
}

func write(w http.ResponseWriter, status int, main string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	// It fails only when the client has gone.
	_, _ = fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Forgotten password</title>
</head>
<body>
<main>
<h1>Forgotten password</h1>
%s</main>
</body>
</html>
`, main)
}

// secure sets headers for every answer. It stands outside of the guard, whose
// refusals keep them.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}
