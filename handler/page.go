package handler

import "net/http"

// pageStyle keeps lines short enough to read. The page fetches nothing and has no
// script; where a Content-Security-Policy forbids styles it is as plain as the browser.
const pageStyle = `<style>body{max-width:36em;margin:3em auto;padding:0 1em;font:1.125em/1.5 system-ui,sans-serif}</style>
`

// appendPage writes the refusal for a person who has sent a form: a heading and two
// sentences. All of its words are ours, so that nothing has to be escaped.
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
	b = append(b, "</title>\n"+pageStyle+"</head>\n<body>\n<main>\n<h1>"...)
	b = append(b, heading...)
	b = append(b, "</h1>\n<p role=\"alert\">"...)
	b = v.appendAdvice(b, wait)
	b = append(b, "</p>\n"...)
	if wait > 0 {
		b = append(b, "<p>What you sent has not been processed. To keep it, go back, wait, and send it again.</p>\n"...)
	}
	return append(b, "</main>\n</body>\n</html>\n"...)
}
