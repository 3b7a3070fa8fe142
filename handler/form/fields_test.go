package form

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tag is a start tag.
type tag struct {
	name string
	attr map[string]string
	text string // between it and the next tag
}

// tags reads a piece of HTML, more strictly than a browser: what is open must be
// closed, and no attribute comes twice.
func tags(t testing.TB, page string) []tag {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var list []tag
	for {
		token, err := d.Token()
		if err == io.EOF {
			return list
		}
		require.NoError(t, err, page)
		switch x := token.(type) {
		case xml.StartElement:
			e := tag{name: x.Name.Local, attr: map[string]string{}}
			for _, a := range x.Attr {
				require.NotContains(t, e.attr, a.Name.Local)
				e.attr[a.Name.Local] = a.Value
			}
			list = append(list, e)
		case xml.CharData:
			if len(list) > 0 {
				list[len(list)-1].text += string(x)
			}
		}
	}
}

func TestFields(t *testing.T) {
	for _, class := range []string{"", "trap", "sally-port_2"} {
		s := newSite(t, Config{Class: class})
		page := s.Fields()
		list := tags(t, page)
		require.Len(t, list, 4, page)
		div, label, honeypot, token := list[0], list[1], list[2], list[3]

		require.Equal(t, "div", div.name)
		require.Equal(t, "true", div.attr["aria-hidden"], "no screen reader finds it")
		if class == "" {
			require.Equal(t, OutOfSight, div.attr["style"])
		} else {
			require.Equal(t, class, div.attr["class"])
			require.NotContains(t, page, "style=", "a strict policy forbids it")
		}
		require.Equal(t, "label", label.name)
		require.Contains(t, label.text, "Leave this field empty")

		require.Equal(t, "text", honeypot.attr["type"], "programs leave hidden fields alone")
		require.Equal(t, "-1", honeypot.attr["tabindex"], "no keyboard reaches it")
		require.Equal(t, "off", honeypot.attr["autocomplete"])
		require.NotContains(t, honeypot.attr, "required")
		require.NotContains(t, honeypot.attr, "disabled", "or else it would not be sent")
		require.Equal(t, s.keys[0].honeypot, honeypot.attr["name"])

		require.Equal(t, "hidden", token.attr["type"])
		_, ok := s.parse(token.attr["value"])
		require.True(t, ok)
		require.NotContains(t, page, "<script")
		require.NotEqual(t, page, s.Fields(), "each page has its token")
	}
	require.NotContains(t, OutOfSight, "display")
	require.NotContains(t, OutOfSight, "visibility")
}

// The honeypot is called alike by all instances of a site, and differently elsewhere;
// and no browser takes the name for one that it can fill in.
func TestHoneypotName(t *testing.T) {
	a, b := newSite(t, Config{}), newSite(t, Config{})
	require.Equal(t, a.keys[0].honeypot, b.keys[0].honeypot)
	require.Regexp(t, `^subject_[0-9a-f]{8}$`, a.keys[0].honeypot)
	require.NotEqual(t, a.keys[0].honeypot, newSite(t, Config{ID: "other"}).keys[0].honeypot)
	require.NotEqual(t, a.keys[0].honeypot, newSite(t, Config{Secret: secret[1:]}).keys[0].honeypot)
	for _, known := range []string{"name", "mail", "phone", "tel", "addr", "city", "zip", "country", "company", "url", "web", "home", "user", "pass", "card", "code"} {
		require.NotContains(t, strings.TrimRight(a.keys[0].honeypot, "0123456789abcdef"), known)
	}
}
