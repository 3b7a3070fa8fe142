package form

import (
	"net/http"
	"strings"
	"time"
)

// tokenField is the name of the token's field.
const tokenField = "form-token"

// OutOfSight are the declarations of CSS that take the honeypot out of sight but
// leave it on the page. display: none would be simpler, and is what programs look for.
const OutOfSight = "position:absolute;width:1px;height:1px;margin:-1px;padding:0;border:0;overflow:hidden;clip-path:inset(50%);white-space:nowrap"

// Fields returns the hidden part of the form as HTML, to stand anywhere between
// <form method="post"> and </form>: the honeypot and a fresh token. Call it for each
// page. People with a screen reader, a keyboard or a browser without style sheets are
// not led into the honeypot: it is hidden from the first two, and its label says to
// leave it empty. Nothing in it comes from a request.
//
// The page must not be served from a shared cache, or its visitors share one token:
// send "Cache-Control: private, no-cache" (with no-store, browsers forget what was typed
// when a visitor goes back). A handler finds both fields among the others, under the
// names "form-token" and "subject_" and eight hexadecimal digits.
func (f *Form) Fields() string { return f.fields(f.mint(kindFirst, time.Now())) }

// FieldsAgain is Fields for a form that is shown once more, filled in, in answer to r,
// a request that came through [Form.Handler]: a field was wrong, or [Trouble] says
// something. It keeps r's token while it is good, so that a correction may be sent at
// once; else it has a fresh one, with which a person who is too fast is asked to wait
// and not taken for a program.
func (f *Form) FieldsAgain(r *http.Request) string {
	v := visitOf(r.Context())
	switch {
	case v == nil || v.form != f:
		return f.Fields()
	case v.keep:
		return f.fields(v.text)
	}
	return f.fields(f.mint(kindAgain, time.Now()))
}

// fields writes what needs no escaping: names and tokens are letters, digits, - and _.
func (f *Form) fields(token string) string {
	var b strings.Builder
	b.Grow(512)
	if f.class != "" {
		b.WriteString(`<div class="` + f.class + `"`)
	} else {
		b.WriteString(`<div style="` + OutOfSight + `"`)
	}
	// The label is around its field, so that two forms on a page need no ids.
	b.WriteString(` aria-hidden="true"><label>Leave this field empty <input type="text" name="`)
	b.WriteString(f.keys[0].honeypot)
	b.WriteString(`" value="" tabindex="-1" autocomplete="off"></label></div>` + "\n")
	// Without autocomplete="off" Firefox keeps an old token over a reload.
	b.WriteString(`<input type="hidden" name="` + tokenField + `" value="`)
	b.WriteString(token)
	b.WriteString(`" autocomplete="off">` + "\n")
	return b.String()
}

// isHoneypot tells whether a field is the honeypot, by an old secret too.
func (f *Form) isHoneypot(name string) bool {
	for i := range f.keys {
		if name == f.keys[i].honeypot {
			return true
		}
	}
	return false
}
