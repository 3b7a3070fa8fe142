package storetest

import (
	"slices"
	"strings"

	"github.com/sallyport/sallyport/stores"
)

var keyClauses = []clause{
	{"keys are counted apart", keysApart},
	{"keys that differ in one character are counted apart", awkwardKeys},
	{"keys of 512 bytes that differ in one are counted apart", longKeys},
}

func keysApart(c *check) {
	s := c.open()
	offender, honest := c.fixed(2, long), c.fixed(2, long)
	c.fill(s, offender, 2)
	for range 50 {
		c.refuse(s, offender, 0)
	}
	c.fill(s, honest, 2)
	for range 50 {
		c.fill(s, c.fixed(1, long), 1)
	}
	c.refuse(s, offender, 0)
}

// awkwardKeys has every printable character at the start, in the middle and at the
// end of a key: what is folded, trimmed, escaped or taken for a separator or a
// pattern makes two clients one.
func awkwardKeys(c *check) {
	s := c.open()
	base := c.keys.next()
	middle := len(base) / 2
	names := []string{base}
	for r := byte(0x20); r <= 0x7e; r++ {
		char := string(rune(r))
		names = append(names, char+base, base[:middle]+char+base[middle+1:], base+char)
	}
	slices.Sort(names) // the middle of base is one of them
	names = slices.Compact(names)
	c.eachOnce(s, names)
}

func longKeys(c *check) {
	s := c.open()
	base := c.keys.next()
	full := base + strings.Repeat("k", maxKey-len(base))
	names := []string{full}
	for _, at := range []int{0, 31, 63, 127, 128, 254, 255, 256, 257, 383, maxKey - 1} {
		names = append(names, full[:at]+"_"+full[at+1:])
		if at > len(base) {
			names = append(names, full[:at])
		}
	}
	c.eachOnce(s, names)
}

// eachOnce takes the one hit of a quota on each key, and then finds each used up.
func (c *check) eachOnce(s stores.Store, names []string) {
	c.Helper()
	for _, first := range []bool{true, false} {
		for _, name := range names {
			h := stores.Hit{Key: name, Limit: stores.FixedWindow(1, long)}
			if d := c.take(s, h); d.Allowed != first {
				c.Fatalf("Take %v on the key %q: %s, its first hit: %t: want the first hit on each key allowed and the second refused", h.Limit, name, state(d), first)
			}
		}
	}
}
