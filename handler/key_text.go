package handler

import "strings"

// text finds a value that the caller wrote somewhere into his request.
type text interface {
	// find returns the value if there is one.
	find(q *inquiry) (string, presence)

	// kind and name scope the value: "header", "X-Api-Key".
	kind() string
	name() string

	rank() rank
}

// presence tells whether a text was found.
type presence uint8

const (
	absent     presence = iota // or empty
	present                    // once, or several times alike
	several                    // several that differ, of which none is more the caller's than another
	unreadable                 // of a body, in which case the inquiry's refusal is set
)

// textKey counts by a text.
type textKey struct {
	text
	email bool
}

// Email returns a key that takes the value of k for an e-mail address: spaces
// around it off, Unicode NFC, lower case, as an account look-up should. Dots and
// plus-tags are kept: only the mailbox's own server knows what they mean. It is for
// keys whose value is a text (ByHeader, ByCookie, ByForm, ByJSON, ByClaim, ByFunc); for
// others New reports it.
func (k Key) Email() Key {
	switch s := k.source.(type) {
	case textKey:
		s.email = true
		return Key{s}
	case invalid:
		return k
	}
	return Key{invalid{k.String() + "|email", "Email is for keys whose value is a text, such as ByHeader"}}
}

func (k textKey) identify(q *inquiry) bool {
	value, found := k.find(q)
	switch found {
	case present:
		return k.add(&q.id, value)
	case several:
		q.guard.reports.several.note(q.guard.logger, "requests with several values of what they are counted by are counted together", "key", k.String())
		q.id.add("several")
		q.id.add(k.kind())
		q.id.add(k.name())
		return true
	}
	return false
}

func (k textKey) add(id *identity, value string) bool {
	if k.email {
		value = normalEmail(value)
	}
	if value == "" {
		return false
	}
	id.add(k.kind())
	id.add(k.name())
	id.add(value)
	return true
}

func (k textKey) given(id *identity, texts []string) (bool, error) {
	value := texts[0]
	switch t := k.text.(type) {
	case headerText:
		value = t.normal(value)
	case cookieText:
		value = trimField(value)
	case formText, *jsonText:
		if strings.TrimSpace(value) == "" {
			return false, nil
		}
	}
	return k.add(id, value), nil
}

func (k textKey) arity() int   { return 1 }
func (k textKey) check() error { return nil }

func (k textKey) rank() rank {
	if k.email && k.text.rank() == rankCaller {
		return rankTarget
	}
	return k.text.rank()
}

func (k textKey) String() string {
	s := textOf(k.kind(), k.name())
	if k.email {
		s += "|email"
	}
	return s
}

// trimField cuts the white space off that RFC 9110 section 5.5 does not count to a
// field's value.
func trimField(s string) string { return strings.Trim(s, " \t") }
