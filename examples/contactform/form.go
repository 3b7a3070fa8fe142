package main

import (
	"fmt"
	"html"
	"strings"
)

// formHTML returns the form, filled in with message, around the hidden fields. Each
// fault stands beside its field, which names it for screen readers and is marked as
// invalid; the first one gets the focus.
func formHTML(message Message, faults []fault, hidden, widget string) string {
	var b strings.Builder
	b.WriteString("<h1>Contact</h1>\n")
	if len(faults) == 0 {
		b.WriteString("<p>Write to us, and we answer by e-mail. Please fill in all fields.</p>\n")
	} else if faults[0].Field == "" {
		fmt.Fprintf(&b, "<p class=\"fault\" role=\"alert\">%s</p>\n", faults[0].Text)
	} else {
		b.WriteString("<p class=\"fault\" role=\"alert\">Your message has not been sent yet. Please check the marked fields.</p>\n")
	}
	b.WriteString("<form action=\"/contact\" method=\"post\">\n" + hidden)
	begin(&b, "name", "Name", faults)
	fmt.Fprintf(&b, " type=\"text\" autocomplete=\"name\" maxlength=\"%d\" value=\"%s\">\n", maxName, html.EscapeString(message.Name))
	begin(&b, "email", "E-mail", faults)
	fmt.Fprintf(&b, " type=\"email\" autocomplete=\"email\" maxlength=\"%d\" value=\"%s\">\n", maxEmail, html.EscapeString(message.Email))
	begin(&b, "message", "Message", faults)
	// The line end after the tag is dropped by browsers; without it, they would drop
	// one that was typed.
	fmt.Fprintf(&b, " rows=\"8\" maxlength=\"%d\">\n%s</textarea>\n", maxText, html.EscapeString(message.Text))
	b.WriteString(widget)
	b.WriteString("<button type=\"submit\">Send message</button>\n</form>\n")
	return b.String()
}

// begin writes a field's label, its fault, and its tag up to the attributes that
// all fields have.
func begin(b *strings.Builder, name, label string, faults []fault) {
	fmt.Fprintf(b, "<label for=\"%s\">%s</label>\n", name, label)
	text, first := "", false
	for i, f := range faults {
		if f.Field == name {
			text, first = f.Text, i == 0
		}
	}
	if text != "" {
		fmt.Fprintf(b, "<p class=\"fault\" id=\"%s-fault\">%s</p>\n", name, text)
	}
	tag := "input"
	if name == "message" {
		tag = "textarea"
	}
	fmt.Fprintf(b, "<%s id=\"%s\" name=\"%s\" required", tag, name, name)
	if text != "" {
		fmt.Fprintf(b, " aria-invalid=\"true\" aria-describedby=\"%s-fault\"", name)
	}
	if first {
		b.WriteString(" autofocus")
	}
}
