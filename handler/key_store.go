package handler

import (
	"strconv"

	"github.com/sallyport/sallyport/stores"
)

// maxKey is the longest key of a [stores.Hit].
const maxKey = 512

// storeKey returns the key under which a store counts the identity.
//
// Shared stores see an HMAC. Package memory alone keeps no more than a seeded hash
// of what it is given, so there the identity itself will do if it is short and
// printable, which saves most of the time that a decision takes.
func (c *common) storeKey(p *policy, limit stores.Limit, id *identity) string {
	if c.plainKeys {
		var room [128]byte // for most; a longer key finds its own
		b := append(room[:0], p.base...)
		if limit != p.Limit && !sameShape(limit, p.Limit) {
			b = c.appendBase(room[:0], p.Name, limit)
		}
		if b, ok := appendParts(b, id); ok {
			return string(b)
		}
	}
	all := string(id.text)
	var room [8]string
	parts, start := room[:0], 0
	for _, end := range id.ends {
		parts = append(parts, all[start:end])
		start = end
	}
	return c.keyer.Key(p.Name, limit, parts...)
}

// appendBase writes what scopes a plain key: prefix and name with their lengths,
// and the limit's shape. Its first byte is one with which no key of the Keyer
// begins, so the two forms never meet.
func (c *common) appendBase(b []byte, name string, limit stores.Limit) []byte {
	b = append(b, c.mark)
	b = appendPart(b, c.prefix)
	b = appendPart(b, name)
	b = strconv.AppendUint(b, uint64(limit.Algorithm), 10)
	b = append(b, '/')
	b = strconv.AppendInt(b, int64(limit.Window), 10)
	b = append(b, '/')
	b = strconv.AppendInt(b, int64(limit.Block), 10)
	return append(b, ' ')
}

func sameShape(a, b stores.Limit) bool {
	return a.Algorithm == b.Algorithm && a.Window == b.Window && a.Block == b.Block
}

// appendParts writes each part behind its length, so that no two identities have
// one text. It returns false if that would not be a valid key.
func appendParts(b []byte, id *identity) ([]byte, bool) {
	const longestLength = len("512:")
	if len(b)+len(id.text)+longestLength*len(id.ends) > maxKey || !printable(id.text) {
		return nil, false
	}
	start := 0
	for _, end := range id.ends {
		b = appendPart(b, id.text[start:end])
		start = end
	}
	return b, true
}

func appendPart[T string | []byte](b []byte, part T) []byte {
	b = strconv.AppendInt(b, int64(len(part)), 10)
	b = append(b, ':')
	return append(b, part...)
}

// markOf returns a byte that a prefix does not begin with.
func markOf(prefix string) byte {
	if prefix[0] == '=' {
		return '-'
	}
	return '='
}
