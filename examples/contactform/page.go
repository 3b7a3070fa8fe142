package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// showForm answers GET /. The browser may keep it, because one that is told no-store
// forgets what was typed when the visitor goes back from a refusal; nobody else may,
// because each visitor needs a token of his own.
func (s *site) showForm(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "private, no-cache")
	writePage(w, http.StatusOK, "Contact", formHTML(Message{}, nil, s.form.Fields(), s.captcha.widget))
}

// showThanks answers a message that came, and what programs send. A browser is sent on,
// so that reloading the page it gets sends nothing again.
func showThanks(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if wantsJSON(w, r) {
		writeJSON(w, http.StatusOK, "application/json", map[string]string{"status": "received"})
		return
	}
	w.Header().Set("Location", "/thanks")
	w.WriteHeader(http.StatusSeeOther)
}

func thanksPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	writePage(w, http.StatusOK, "Thank you", `<h1>Thank you</h1>
<p>Your message has been received.</p>
<p><a href="/">Send another message</a></p>
`)
}

// showFaults answers with the form as it was filled in, and says what to change.
// Only this browser may keep the page, for the same reason as in showForm.
func (s *site) showFaults(w http.ResponseWriter, r *http.Request, status int, message Message, faults []fault) {
	w.Header().Set("Cache-Control", "private, no-cache")
	if wantsJSON(w, r) {
		texts := make(map[string]string, len(faults))
		detail := "Some fields can't be accepted as they are."
		for _, f := range faults {
			if f.Field == "" {
				detail = f.Text
				continue
			}
			texts[f.Field] = f.Text
		}
		writeProblem(w, status, detail, texts)
		return
	}
	s.writeForm(w, r, status, "Please check the form", message, faults)
}

// writeForm shows the form once more, with the token that came while it is good.
func (s *site) writeForm(w http.ResponseWriter, r *http.Request, status int, title string, message Message, faults []fault) {
	writePage(w, status, title, formHTML(message, faults, s.form.FieldsAgain(r), s.captcha.widget))
}

// showFailure answers a body that is not what the form sends.
func showFailure(w http.ResponseWriter, r *http.Request, status int) {
	w.Header().Set("Cache-Control", "no-store")
	text := map[int]string{
		http.StatusUnsupportedMediaType:  "Please send the fields as application/x-www-form-urlencoded, as a form does.",
		http.StatusRequestEntityTooLarge: "This is more than the form takes. Please go back and shorten your message.",
		http.StatusBadRequest:            "The form arrived damaged. Please go back and send it again.",
	}[status]
	if wantsJSON(w, r) {
		writeProblem(w, status, text, nil)
		return
	}
	writePage(w, status, "Not sent", "<h1>Not sent</h1>\n<p>"+text+"</p>\n<p><a href=\"/\">Start with an empty form</a></p>\n")
}

// wantsJSON tells whether a program asks. A browser also names text/html.
func wantsJSON(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Add("Vary", "Accept")
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// writeProblem writes a problem document (RFC 9457).
func writeProblem(w http.ResponseWriter, status int, detail string, fields map[string]string) {
	writeJSON(w, status, "application/problem+json", struct {
		Title  string            `json:"title"`
		Status int               `json:"status"`
		Detail string            `json:"detail"`
		Fields map[string]string `json:"fields,omitempty"`
	}{http.StatusText(status), status, detail, fields})
}

func writeJSON(w http.ResponseWriter, status int, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	// It fails only when the client has gone.
	_ = json.NewEncoder(w).Encode(body)
}

// writePage writes a page around main. html/template would escape by itself, but
// adds megabytes to the binary; whatever a visitor typed goes through
// html.EscapeString in formHTML, and nowhere else.
func writePage(w http.ResponseWriter, status int, title, main string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>%s</style>
</head>
<body>
<main>
%s</main>
</body>
</html>
`, title, style, main)
}
