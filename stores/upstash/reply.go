package upstash

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// slot is the answer to one command of a pipeline.
type slot struct {
	kind slotKind
	n    int64   // of isInt
	list []int64 // of isList
	text string  // of isText and isError, and what stands last in an isList
}

type slotKind uint8

const (
	isOdd slotKind = iota // JSON, but no answer that a command here can have
	isInt
	isText
	isNull
	isError
	isList // an array of integers, and perhaps a text as its last element, as the script returns it
)

// parse reads the answer to a pipeline: an array of exactly len(slots) objects, each
// with one member, "result" or "error". encoding/json alone would be too lenient: it
// reads null as 0, which would let everything pass, takes "RESULT" for "result", and
// lets the last of several members win. So it only says whether all of the body is
// JSON; what is looked at afterwards is looked at byte by byte.
func parse(body []byte, slots []slot) error {
	if !json.Valid(body) {
		return malformed("an answer that is no JSON")
	}
	if text, isError := wholeError(body); isError {
		v := read(text)
		return v.fault(v.known)
	}
	c := cursor{body}
	if !c.take('[') {
		return malformed("an answer that is no array")
	}
	n := 0
	for ; !c.take(']'); n++ {
		c.take(',')
		value := c.value()
		if n < len(slots) {
			slots[n] = readSlot(value)
		}
	}
	if n != len(slots) {
		return malformed("an answer with " + strconv.Itoa(n) + " parts to " + strconv.Itoa(len(slots)) + " commands")
	}
	return nil
}

// wholeError returns the text of {"error": "..."}, which stands for a whole request.
// body is JSON.
func wholeError(body []byte) (string, bool) {
	c := cursor{body}
	s := readSlot(c.value())
	return s.text, s.kind == isError
}

// readSlot reads one slot, which is valid JSON.
func readSlot(value []byte) slot {
	c := cursor{value}
	if !c.take('{') || c.take('}') {
		return slot{}
	}
	name, _, result := c.value(), c.take(':'), c.value()
	if !c.take('}') {
		return slot{}
	}
	switch string(name) {
	case `"error"`:
		if result[0] != '"' {
			return slot{}
		}
		return slot{kind: isError, text: text(result)}
	case `"result"`:
	default:
		return slot{}
	}
	switch {
	case string(result) == "null":
		return slot{kind: isNull}
	case result[0] == '"':
		return slot{kind: isText, text: text(result)}
	case result[0] == '[':
		s, ok := list(result)
		if !ok {
			return slot{}
		}
		return s
	}
	n, ok := integer(result)
	if !ok {
		return slot{}
	}
	return slot{kind: isInt, n: n}
}

// integer reads a JSON value that is one. ParseInt takes what JSON does not, but this
// is JSON: no sign or zero before the digits, and a fraction or an exponent makes it
// fail.
func integer(value []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil
}

// list reads an array of integers, the last element of which may be a text with at least
// one character.
func list(value []byte) (slot, bool) {
	c := cursor{value}
	c.take('[')
	s := slot{kind: isList, list: make([]int64, 0, rowLength)}
	for !c.take(']') {
		if s.text != "" || len(s.list) > 0 && !c.take(',') {
			return slot{}, false
		}
		v := c.value()
		if len(v) > 0 && v[0] == '"' {
			if s.text = text(v); s.text == "" {
				return slot{}, false
			}
			continue
		}
		n, ok := integer(v)
		if !ok {
			return slot{}, false
		}
		s.list = append(s.list, n)
	}
	return s, true
}

func text(value []byte) string {
	var s string
	_ = json.Unmarshal(value, &s) // it is a valid string
	return s
}

// cursor walks over what json.Valid has found to be JSON.
type cursor struct{ rest []byte }

// take skips blanks and then this byte, and tells whether it was there.
func (c *cursor) take(b byte) bool {
	c.rest = bytes.TrimLeft(c.rest, " \t\r\n")
	if len(c.rest) == 0 || c.rest[0] != b {
		return false
	}
	c.rest = c.rest[1:]
	return true
}

// value returns the next value whole, without the blanks around it.
func (c *cursor) value() []byte {
	c.rest = bytes.TrimLeft(c.rest, " \t\r\n")
	depth, inString := 0, false
	for i := 0; i < len(c.rest); i++ {
		switch b := c.rest[i]; {
		case inString:
			if b == '\\' {
				i++
			} else if b == '"' {
				inString = false
			}
		case b == '"':
			inString = true
		case b == '[' || b == '{':
			depth++
		case depth > 0 && (b == ']' || b == '}'):
			depth--
		case depth == 0 && (b == ',' || b == ':' || b == ']' || b == '}' || b == ' ' || b == '\t' || b == '\r' || b == '\n'):
			return c.cut(i)
		}
		if depth == 0 && !inString {
			if b := c.rest[i]; b == '"' || b == ']' || b == '}' {
				return c.cut(i + 1)
			}
		}
	}
	return c.cut(len(c.rest))
}

func (c *cursor) cut(n int) []byte {
	v := c.rest[:n]
	c.rest = c.rest[n:]
	return v
}

// counter returns the value of a slot that must be a count or a time, at least least.
func (s slot) counter(least int64, command string) (int64, error) {
	switch {
	case s.kind == isError:
		return 0, failedSlot(s.text)
	case s.kind != isInt || s.n < least:
		return 0, malformed("an answer to " + command + " that is no such number")
	}
	return s.n, nil
}
