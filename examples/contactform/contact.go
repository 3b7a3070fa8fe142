package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/mail"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxBody is in bytes. The largest message that the form lets one type, with every
// character percent-encoded, is smaller.
const maxBody = 64 << 10

// mailTime is what is left of the server's WriteTimeout, with a margin, after the
// slowest body, the slowest store, which is asked twice, and the slowest captcha.
const mailTime = 6 * time.Second

// Bounds of the fields, in characters; those of an address are RFC 5321's.
const (
	maxName  = 100
	maxEmail = 254
	maxText  = 5000
)

// Message is what a visitor sent, checked: Name and Email are single lines, all are
// valid UTF-8 within their bounds.
type Message struct {
	Name, Email, Text string
}

// Mailer is where messages go. Put one of your own into main.go: SMTP, an API, a
// queue. An error tells the visitor that nothing was sent and leaves the form
// filled in. ctx ends after mailTime, and not when the visitor leaves: what arrived
// whole is to be delivered.
type Mailer interface {
	Send(ctx context.Context, m Message) error
}

// logMailer shows that a message came, and keeps none of it.
type logMailer struct{ logger *slog.Logger }

// Send logs the length of the text in bytes.
func (m logMailer) Send(ctx context.Context, message Message) error {
	m.logger.InfoContext(ctx, "contact form: a message came, and was not delivered", "bytes", len(message.Text))
	return nil
}

// contact answers POST /contact, behind the form's own checks.
func (s *site) contact(w http.ResponseWriter, r *http.Request) {
	form, status := readForm(w, r)
	if status != 0 {
		showFailure(w, r, status)
		return
	}
	message, faults := check(form)
	if len(faults) > 0 {
		s.showFaults(w, r, http.StatusUnprocessableEntity, message, faults)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), mailTime)
	defer cancel()
	if err := s.mailer.Send(ctx, message); err != nil {
		// Not why: the error may quote the address. And the hit is not given back, or
		// whoever finds that mail fails could have it tried without a limit.
		slog.ErrorContext(r.Context(), "contact form: a message could not be sent")
		s.showFaults(w, r, http.StatusBadGateway, message, []fault{{"", "Your message could not be sent just now. Please try again."}})
		return
	}
	showThanks(w, r)
}

// readForm returns the fields of the body, or the status that says why it can't.
// Fields in the URL are not read: they end up in logs.
func readForm(w http.ResponseWriter, r *http.Request) (form url.Values, status int) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, http.StatusUnsupportedMediaType
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, http.StatusRequestEntityTooLarge
	} else if err != nil {
		return nil, http.StatusBadRequest
	}
	if form, err = url.ParseQuery(string(body)); err != nil {
		return nil, http.StatusBadRequest
	}
	return form, 0
}

// fault is what is wrong with a field, in words for its visitor. Field is "" for
// the form as a whole.
type fault struct{ Field, Text string }

// check returns the message as it was understood, and all that is wrong with it.
func check(form url.Values) (Message, []fault) {
	var faults []fault
	field := func(name string, most int, ask string) string {
		// A browser sends line ends as CR LF and counts them as one character.
		value := strings.TrimSpace(strings.ReplaceAll(form.Get(name), "\r\n", "\n"))
		wrong := ""
		switch {
		case len(form[name]) > 1:
			wrong = "This field was sent more than once."
		case value == "":
			wrong = ask
		case !utf8.ValidString(value):
			wrong = "This text is damaged: it is no valid UTF-8."
		case utf8.RuneCountInString(value) > most:
			wrong = "This text is too long."
		case strings.ContainsFunc(value, unprintable(name == "message")):
			wrong = "There is a character in this field that can't be sent; it is shown as \uFFFD."
		case name == "email" && !isAddress(value):
			wrong = "Please enter an e-mail address such as name@example.com."
		}
		if wrong != "" {
			faults = append(faults, fault{name, wrong})
			value = visible(value, unprintable(name == "message"))
		}
		return value
	}
	message := Message{
		Name:  field("name", maxName, "Please enter your name."),
		Email: field("email", maxEmail, "Please enter your e-mail address."),
		Text:  field("message", maxText, "Please write a message."),
	}
	return message, faults
}

// unprintable finds control characters. In a field of one line that is a line end
// too: it could become a header line of the mail.
func unprintable(lines bool) func(rune) bool {
	return func(c rune) bool {
		return unicode.IsControl(c) && !(lines && (c == '\n' || c == '\t'))
	}
}

// visible replaces the characters that found finds.
func visible(s string, found func(rune) bool) string {
	return strings.Map(func(c rune) rune {
		if found(c) {
			return utf8.RuneError
		}
		return c
	}, s)
}

// isAddress tells whether s is one bare address, without a name, brackets or
// comments around it.
func isAddress(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Name == "" && a.Address == s
}
