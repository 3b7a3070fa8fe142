package handler

import (
	"net/http"
	"strings"
)

// maxFieldName is the longest name of a body field or claim, in bytes.
const maxFieldName = 256

// unreadable refuses the request: status is 400 or 413.
func (q *inquiry) unreadable(status int) (string, presence) {
	q.refusal = status
	return "", unreadable
}

// misfit refuses the request because its body is of a kind that the key does not
// read, which another key of the same FirstOf may make good.
func (q *inquiry) misfit() (string, presence) {
	q.misfits = true
	return q.unreadable(http.StatusBadRequest)
}

// one is the value of a body field that was there once. White space alone is no
// identity, but is what the handler gets.
func (q *inquiry) one(field, value string) (string, presence) {
	if !isText(value) {
		return q.unreadable(http.StatusBadRequest)
	}
	q.noteValue(field, value)
	if strings.TrimSpace(value) == "" {
		return "", absent
	}
	return value, present
}

// isText tells whether all who read s read the same. They don't where a byte is no
// UTF-8 or a NUL: a decoder replaces it by U+FFFD, a database refuses it or ends the
// text there, and the caller would have any number of spellings of one value.
func isText(s string) bool {
	return !strings.ContainsAny(s, "\x00\ufffd") // what is no UTF-8 is U+FFFD to ContainsAny
}

func isFieldName(s string) bool { return s != "" && len(s) <= maxFieldName && isText(s) }

// reads tells whether s, or a part of it, reads bodies of this kind.
func reads(s source, kind media) bool {
	switch s := s.(type) {
	case textKey:
		switch s.text.(type) {
		case formText:
			return kind == mediaForm || kind == mediaMultipart
		case *jsonText:
			return kind == mediaJSON
		}
	case join:
		return anyReads(s, kind)
	case firstOf:
		return anyReads(s, kind)
	}
	return false
}

func anyReads(sources []source, kind media) bool {
	for _, s := range sources {
		if reads(s, kind) {
			return true
		}
	}
	return false
}
