package main

import (
	"encoding/xml"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// element is a start tag with its attributes.
type element struct {
	name string
	attr map[string]string
}

// elements reads a page as XML with HTML's liberties, which is stricter than any
// browser: what is open must be closed, in order.
func elements(t testing.TB, page string) []element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var list []element
	for {
		token, err := d.Token()
		if err == io.EOF {
			return list
		}
		require.NoError(t, err, page)
		if tag, ok := token.(xml.StartElement); ok {
			e := element{tag.Name.Local, map[string]string{}}
			for _, a := range tag.Attr {
				require.NotContains(t, e.attr, a.Name.Local, "attribute given twice")
				e.attr[a.Name.Local] = a.Value
			}
			list = append(list, e)
		}
	}
}

var titled = regexp.MustCompile(`<title>[^<]+</title>`)

// requireAccessible checks what each page needs to be read and used by everybody.
func requireAccessible(t testing.TB, page string) {
	t.Helper()
	require.True(t, strings.HasPrefix(page, "<!doctype html>\n<html lang=\"en\">"))
	require.Regexp(t, titled, page)
	labels, ids, count := map[string]bool{}, map[string]bool{}, map[string]int{}
	list := elements(t, page)
	for _, e := range list {
		count[e.name]++
		if id, ok := e.attr["id"]; ok {
			require.False(t, ids[id], "two elements are called %s", id)
			ids[id] = true
		}
		if e.name == "label" && e.attr["for"] != "" {
			labels[e.attr["for"]] = true
		}
		if e.name == "meta" && e.attr["name"] == "viewport" {
			require.NotContains(t, e.attr["content"], "user-scalable")
			require.NotContains(t, e.attr["content"], "maximum-scale")
			count["viewport"]++
		}
		for _, name := range []string{"src", "srcset", "style", "onclick", "onsubmit"} {
			require.NotContains(t, e.attr, name)
		}
		require.NotContains(t, []string{"script", "link", "img", "iframe"}, e.name, "nothing from outside, no script")
		if e.attr["autofocus"] != "" {
			count["autofocus"]++
		}
	}
	require.Equal(t, 1, count["main"])
	require.Equal(t, 1, count["h1"])
	require.Equal(t, 1, count["viewport"])
	require.LessOrEqual(t, count["autofocus"], 1)
	visible := 0
	for _, e := range list {
		if (e.name == "input" || e.name == "textarea") && !ours(e) {
			visible++
			require.True(t, labels[e.attr["id"]], "%s has no label", e.attr["name"])
			require.NotEmpty(t, e.attr["required"])
			require.NotEmpty(t, e.attr["maxlength"])
		}
		if described, ok := e.attr["aria-describedby"]; ok {
			require.True(t, ids[described], "nothing is called %s", described)
			require.Equal(t, "true", e.attr["aria-invalid"])
		}
	}
	require.Equal(t, len(labels), visible)
}

// ours tells whether a field is one that no visitor meets: package form has tests of
// its own for these.
func ours(e element) bool {
	return e.attr["name"] == "form-token" || strings.HasPrefix(e.attr["name"], "subject_")
}

func TestForm(t *testing.T) {
	w := ask(testSite(t, &recorder{}), "GET", "/", "")
	require.Equal(t, 200, w.Code)
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	require.NotContains(t, w.Header().Get("Cache-Control"), "no-store", "browsers would forget what was typed")
	requireSecure(t, w.Header())
	page := w.Body.String()
	requireAccessible(t, page)
	var names []string
	for _, e := range elements(t, page) {
		switch e.attr["name"] {
		case "name", "email":
			require.Equal(t, e.attr["name"], e.attr["autocomplete"])
			fallthrough
		case "message":
			names = append(names, e.attr["name"])
		}
		if e.name == "form" {
			require.Equal(t, "/contact", e.attr["action"])
			require.Equal(t, "post", e.attr["method"])
		}
	}
	require.Equal(t, []string{"name", "email", "message"}, names)
	require.NotContains(t, page, "aria-invalid=")
	require.Equal(t, "private, no-cache", w.Header().Get("Cache-Control"), "each visitor needs a token of his own")
	require.Contains(t, page, `<div class="trap" aria-hidden="true">`)
	require.Contains(t, style, ".trap { position:absolute;")
}

// The page that one corrects must survive going back from a refusal.
func TestFilledFormMayBeKept(t *testing.T) {
	w := ask(testSite(t, &recorder{}), "POST", "/contact", "name=Ada&"+hidden(), formType)
	require.Equal(t, "private, no-cache", w.Header().Get("Cache-Control"))
	page := w.Body.String()
	require.Contains(t, page, `<p class="fault" role="alert">`)
	require.Regexp(t, `<input id="email"[^>]* aria-invalid="true" aria-describedby="email-fault" autofocus `, page)
	require.Equal(t, 1, strings.Count(page, " autofocus"))
	require.NotRegexp(t, `<input id="name"[^>]* aria-invalid`, page)
}

func TestRoutes(t *testing.T) {
	site := testSite(t, &recorder{})
	tests := []struct {
		method, target string
		status         int
	}{
		{"GET", "/", 200}, {"HEAD", "/", 200}, {"POST", "/", 405}, {"GET", "/index.html", 404},
		{"GET", "/contact", 303}, {"PUT", "/contact", 405}, {"GET", "/contact/", 404}, {"OPTIONS", "/contact", 405},
		{"GET", "/thanks", 200}, {"POST", "/thanks", 405},
		{"GET", "/healthz", 200}, {"GET", "/healthz/", 404}, {"GET", "/favicon.ico", 404},
	}
	for _, test := range tests {
		w := ask(site, test.method, test.target, "")
		require.Equal(t, test.status, w.Code, "%s %s", test.method, test.target)
		requireSecure(t, w.Header())
	}
	require.Equal(t, "/", ask(site, "GET", "/contact", "").Header().Get("Location"))
	require.NotContains(t, ask(site, http.MethodGet, "/healthz", "").Header(), "Ratelimit")
}

// contrast is WCAG 2.1's, for the colours of the style sheet: 4.5 for text and 3 for
// what surrounds a field.
func TestContrast(t *testing.T) {
	for _, scheme := range regexp.MustCompile(`--text:[^}]+`).FindAllString(style, -1) {
		colour := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]+);`).FindAllStringSubmatch(scheme, -1) {
			colour[m[1]] = luminance(t, m[2])
		}
		require.Len(t, colour, 7)
		for _, pair := range []struct {
			front, back string
			least       float64
		}{
			{"text", "page", 4.5}, {"text", "field", 4.5}, {"accent", "page", 4.5}, {"on-accent", "accent", 4.5},
			{"fault", "page", 4.5}, {"line", "page", 3}, {"line", "field", 3}, {"fault", "field", 3},
		} {
			light, dark := max(colour[pair.front], colour[pair.back]), min(colour[pair.front], colour[pair.back])
			require.GreaterOrEqual(t, (light+.05)/(dark+.05), pair.least, "%s on %s: %s", pair.front, pair.back, scheme)
		}
	}
	require.Equal(t, 2, strings.Count(style, "--text:"), "light and dark")
	require.Contains(t, style, "color-scheme: light dark")
	require.Contains(t, style, ":focus-visible { outline:")
}

// luminance is the relative luminance of a colour in hexadecimal, of 3 or 6 digits.
func luminance(t *testing.T, hex string) float64 {
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	require.Len(t, hex, 6)
	sum := 0.0
	for i, weight := range []float64{.2126, .7152, .0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		require.NoError(t, err)
		c := float64(n) / 255
		if c <= .04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
