package lambda

import (
	"iter"
	"strings"
)

// items are the items of a list of structured fields (RFC 9651, section 3.1), without
// the spaces around them; empty ones are left out. A comma within quotes parts
// nothing.
func items(list string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for list != "" {
			item := untilOutside(list, ',')
			list = strings.TrimPrefix(list[len(item):], ",")
			if item = strings.Trim(item, " \t"); item != "" && !yield(item) {
				return
			}
		}
	}
}

// itemName is an item without its parameters.
func itemName(item string) string { return strings.TrimRight(untilOutside(item, ';'), " \t") }

// untilOutside is s up to the first end that is not within quotes, or all of it.
func untilOutside(s string, end byte) string {
	inQuotes := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			inQuotes = !inQuotes
		case c == '\\' && inQuotes:
			i++
		case c == end && !inQuotes:
			return s[:i]
		}
	}
	return s
}
