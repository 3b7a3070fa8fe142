package handler

import "strings"

// chain walks the entries of X-Forwarded-For from the right, where our own proxies
// wrote, to the left, where the client may have. Several header lines are one list,
// in the order of the lines (RFC 9110, section 5.3): whoever reads one line alone
// lets the client choose which. The joined text is never built; what is not walked
// costs nothing, however long it is.
type chain struct {
	lines []string // not yet begun
	rest  string   // of the line being walked
	open  bool     // rest has one more entry, which may be empty
}

func newChain(lines []string) chain { return chain{lines: lines} }

// next returns the next entry to the left, with the spaces around it. It may be
// empty; ok is false when there is none.
func (c *chain) next() (entry string, ok bool) {
	if !c.open {
		if len(c.lines) == 0 {
			return "", false
		}
		last := len(c.lines) - 1
		c.rest, c.open = c.lines[last], true
		c.lines = c.lines[:last]
	}
	comma := strings.LastIndexByte(c.rest, ',')
	if comma < 0 {
		entry, c.rest, c.open = c.rest, "", false
		return entry, true
	}
	entry, c.rest = c.rest[comma+1:], c.rest[:comma]
	return entry, true
}
