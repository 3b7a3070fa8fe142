package handler

import "net/http"

// appendPage writes the refusal for a person who has sent a form: a heading and two
// sentences, in the browser's own style, so that it needs no script, no style sheet
// and nothing that a Content-Security-Policy forbids. All of its words are ours,
// so that nothing has to be escaped.
func (v *Verdict) appendPage(b []byte, wait int64) []byte {
	heading := "Too many requests"
	switch v.Status {
	case http.StatusTooManyRequests:
	case http.StatusServiceUnavailable:
		heading = "Temporarily unavailable"
	default:
		heading = http.StatusText(v.Status)
	}
	b = append(b, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>`...)
	b = append(b, heading...)
	b = append(b, "</title>\n</head>\n<body>\n<main>\n<h1>"...)
	b = append(b, heading...)
	b = append(b, "</h1>\n<p>"...)
	b = v.appendAdvice(b, wait)
	b = append(b, "</p>\n"...)
	if wait > 0 {
		b = append(b, "<p>What you sent has not been processed. To keep it, go back, wait, and send it again.</p>\n"...)
	}
	return append(b, "</main>\n</body>\n</html>\n"...)
}
