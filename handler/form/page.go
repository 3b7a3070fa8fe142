package form

import (
	"html"
	"net/http"
	"strconv"
	"strings"
)

// The frame of a page, in the browser's own style: no script, no style sheet, nothing
// that a Content-Security-Policy forbids.
const (
	pageTop = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>%</title>
</head>
<body>
<main>
<h1>%</h1>
`
	pageEnd = "</main>\n</body>\n</html>\n"
)

func writePage(w http.ResponseWriter, status int, heading, main string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	// There is nobody to tell of an error: the connection is gone.
	_, _ = w.Write([]byte(strings.ReplaceAll(pageTop, "%", heading) + main + pageEnd))
}

// thanks is the default Decoy.
func thanks(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	writePage(w, http.StatusOK, "Thank you", "<p>Your message has been received.</p>\n")
}

// showAgain is the default of Config.Again.
func (f *Form) showAgain(w http.ResponseWriter, r *http.Request) {
	v := visitOf(r.Context())
	t := v.trouble
	w.Header().Add("Vary", "Accept")
	if !strings.Contains(strings.ToLower(strings.Join(r.Header["Accept"], ",")), "text/html") {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(t.status)
		// RFC 9457; all of its words are ours and hold nothing to escape.
		_, _ = w.Write([]byte(`{"type":"about:blank","title":"` + http.StatusText(t.status) + `","status":` +
			strconv.Itoa(t.status) + `,"detail":"` + t.text + `"}` + "\n"))
		return
	}
	var b strings.Builder
	b.WriteString("<p>" + t.text + "</p>\n")
	switch {
	case !t.body:
		b.WriteString("<p>To keep what you wrote, go back, change it, and send it again.</p>\n")
	case t.widget || f.captcha != nil:
		b.WriteString("<p>Please go back and copy what you wrote. Then load the form anew, fill it in, and send it.</p>\n")
	default:
		f.appendFilled(&b, v, r)
	}
	writePage(w, t.status, "Not sent yet", b.String())
}

// appendFilled writes a form that sends the same once more, to where it was sent. An
// action would be the request's URL, and there is no need to repeat that.
func (f *Form) appendFilled(b *strings.Builder, v *visit, r *http.Request) {
	var hidden strings.Builder
	files := false
	// It was read before, so there is no error.
	_ = v.posted.each(func(name string) bool { return name != tokenField && !f.isHoneypot(name) }, func(x field) {
		if x.file {
			files = files || x.given
			return
		}
		hidden.WriteString(`<input type="hidden" name="` + html.EscapeString(x.name) + `" value="` + html.EscapeString(x.value) + "\">\n")
	})
	if files {
		// A page can't give a file back to the browser.
		b.WriteString("<p>Please go back and copy what you wrote. Then load the form anew, fill it in, choose your file, and send it.</p>\n")
		return
	}
	b.WriteString("<p>Nothing is lost: please send it again.</p>\n<form method=\"post\" accept-charset=\"utf-8\"")
	if v.posted.kind == typeMultipart {
		b.WriteString(` enctype="` + typeMultipart + `"`)
	}
	b.WriteString(">\n" + hidden.String() + f.FieldsAgain(r))
	b.WriteString("<button type=\"submit\">Send again</button>\n</form>\n")
}
