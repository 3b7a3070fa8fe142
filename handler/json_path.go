package handler

import (
	"bytes"
	"encoding/json"
)

// descend follows names through the objects of a JSON text. The text must be valid:
// json.Valid has seen it, so that what is here needs no error of its own, no
// recursion, and no memory but that of names with escapes.
func descend(text []byte, names [][]byte) (value []byte, found presence) {
	value = trimSpace(text)
	for _, name := range names {
		switch value[0] {
		case '{':
		case 'n':
			return nil, absent
		default:
			return nil, unreadable
		}
		if value, found = member(value, name); found != present {
			return nil, found
		}
	}
	return value, present
}

// member returns the value of the one member of an object whose name is spelt like
// name, in upper or lower case.
func member(object, name []byte) (value []byte, found presence) {
	for i := 1; ; {
		i = skipSpace(object, i)
		switch object[i] {
		case '}':
			return value, found
		case ',':
			i++
			continue
		}
		start := i
		i = skipString(object, i)
		same := isName(object[start:i], name)
		i = skipSpace(object, skipSpace(object, i)+1) // over the colon
		start = i
		i = skipValue(object, i)
		if !same {
			continue
		}
		if found == present {
			return nil, several
		}
		value, found = object[start:i], present
	}
}

// isName compares a JSON string with a name as encoding/json does with a field's.
func isName(text, name []byte) bool {
	if bytes.IndexByte(text, '\\') < 0 {
		return bytes.EqualFold(text[1:len(text)-1], name)
	}
	var s string
	return json.Unmarshal(text, &s) == nil && bytes.EqualFold([]byte(s), name)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func trimSpace(text []byte) []byte { return bytes.Trim(text, " \t\n\r") }

func skipSpace(text []byte, i int) int {
	for isSpace(text[i]) {
		i++
	}
	return i
}

// skipString returns the place behind the string that begins at i.
func skipString(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue returns the place behind the value that begins at i and is not the
// whole text.
func skipValue(text []byte, i int) int {
	for depth := 0; ; {
		switch c := text[i]; {
		case c == '"':
			i = skipString(text, i)
		case c == '{' || c == '[':
			depth++
			i++
		case c == '}' || c == ']':
			depth--
			i++
		default:
			i++
		}
		if depth == 0 && (text[i] == ',' || text[i] == '}' || text[i] == ']' || isSpace(text[i])) {
			return i
		}
	}
}
