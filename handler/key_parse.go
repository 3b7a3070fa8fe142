package handler

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sallyport/sallyport/stores"
)

// The bounds of a key's text.
const (
	maxKeyText  = 4096 // bytes
	maxKeyDepth = 16   // keys within keys
)

const keyForms = "one of ip, net:24,48, header:NAME, cookie:NAME, form:FIELD, json:PATH, claim:NAME, route, everyone, manual, join(KEY,KEY), first(KEY,KEY)"

// ParseKey reads a key as configuration writes it:
//
//	ip                           ByIP()
//	net:24,48                    ByNetwork(24, 48)
//	header:X-Api-Key             ByHeader("X-Api-Key")
//	cookie:sid                   ByCookie("sid")
//	form:email|email             ByForm("email").Email()
//	json:user.email              ByJSON("user.email")
//	claim:sub                    ByClaim("sub")
//	route                        ByRoute()
//	everyone                     Everyone()
//	manual                       Manual()
//	join(ip,route)               Join(ByIP(), ByRoute())
//	first(header:X-Api-Key,ip)   FirstOf(ByHeader("X-Api-Key"), ByIP())
//
// A name with spaces, with one of , ( ) | " or beyond ASCII is written as a string of
// Go: form:"first name". Spaces around the parts don't count. A text has 4,096 bytes at
// most, with keys 16 deep in each other. ByFunc has no text. The error wraps
// [stores.ErrInvalid] and says what was expected.
func ParseKey(s string) (Key, error) {
	fail := func(err error) (Key, error) { return Key{}, fmt.Errorf("key %s: %w", quoted(s), err) }
	if len(s) > maxKeyText {
		return fail(fmt.Errorf("%w: longer than %d bytes", stores.ErrInvalid, maxKeyText))
	}
	p := keyParser{rest: s}
	k, err := p.key(0)
	if err == nil && p.next() != 0 {
		err = p.unexpected("nothing more, or names in quotes that need them")
	}
	if err == nil {
		err = k.source.check()
	}
	if err != nil {
		return fail(err)
	}
	return k, nil
}

// UnmarshalText is ParseKey.
func (k *Key) UnmarshalText(text []byte) error {
	parsed, err := ParseKey(string(text))
	if err != nil {
		return err
	}
	*k = parsed
	return nil
}

// MarshalText is String, and an error that wraps [stores.ErrInvalid] for a key that
// [ParseKey] does not read: the zero Key, one made with a bad argument or with
// ByFunc.
func (k Key) MarshalText() ([]byte, error) {
	s := k.String()
	if _, err := ParseKey(s); err != nil {
		return nil, fmt.Errorf("handler: %w", err)
	}
	return []byte(s), nil
}

// keyParser takes a key's text apart from the left.
type keyParser struct{ rest string }

// next returns the next byte that is no space, 0 at the end.
func (p *keyParser) next() byte {
	p.rest = strings.TrimLeft(p.rest, " ")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

// take takes c if it is next.
func (p *keyParser) take(c byte) bool {
	if p.next() != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *keyParser) unexpected(want string) error {
	if p.next() == 0 {
		return fmt.Errorf("%w: at its end: want %s", stores.ErrInvalid, want)
	}
	return fmt.Errorf("%w: at %s: want %s", stores.ErrInvalid, quoted(p.rest), want)
}

// bare takes the bytes that a name may have without quotes, colons among them if
// asked for.
func (p *keyParser) bare(colons bool) string {
	p.next()
	end := 0
	for end < len(p.rest) && isBare(p.rest[end]) && (colons || p.rest[end] != ':') {
		end++
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

func isBare(c byte) bool {
	return c > ' ' && c <= '~' && strings.IndexByte(`,()|"`, c) < 0
}

// key takes one key with what is behind it.
func (p *keyParser) key(depth int) (Key, error) {
	if depth >= maxKeyDepth {
		return Key{}, fmt.Errorf("%w: keys within keys: want %d of them at most", stores.ErrInvalid, maxKeyDepth)
	}
	before := p.rest
	k, err := p.plain(p.bare(false), depth)
	if err == errNoKey {
		p.rest = before
		return Key{}, p.unexpected(keyForms)
	}
	for err == nil && p.take('|') {
		if word := p.bare(false); word != "email" {
			return Key{}, fmt.Errorf("%w: %s behind \"|\": want email", stores.ErrInvalid, quoted(word))
		}
		k = k.Email()
	}
	return k, err
}

var errNoKey = fmt.Errorf("%w: no key", stores.ErrInvalid)

func (p *keyParser) plain(word string, depth int) (Key, error) {
	switch word {
	case "ip":
		return ByIP(), nil
	case "route":
		return ByRoute(), nil
	case "everyone":
		return Everyone(), nil
	case "manual":
		return Manual(), nil
	case "net":
		return p.network()
	case kindHeader:
		return p.named(ByHeader)
	case kindCookie:
		return p.named(ByCookie)
	case kindForm:
		return p.named(ByForm)
	case kindJSON:
		return p.named(ByJSON)
	case kindClaim:
		return p.named(ByClaim)
	case "join":
		return p.list(Join, depth)
	case "first":
		return p.list(FirstOf, depth)
	case kindFunc:
		return Key{}, fmt.Errorf("%w: a function has no text: make the policy in code, with ByFunc", stores.ErrInvalid)
	}
	return Key{}, errNoKey
}

func (p *keyParser) network() (Key, error) {
	if !p.take(':') {
		return Key{}, p.unexpected(`":" and two numbers, as in "net:24,48"`)
	}
	v4, err4 := strconv.ParseUint(p.bare(true), 10, 8)
	comma := p.take(',')
	v6, err6 := strconv.ParseUint(p.bare(true), 10, 8)
	if err4 != nil || !comma || err6 != nil {
		return Key{}, fmt.Errorf("%w: net: want two numbers of bits, as in \"net:24,48\"", stores.ErrInvalid)
	}
	return ByNetwork(int(v4), int(v6)), nil
}

func (p *keyParser) named(by func(string) Key) (Key, error) {
	if !p.take(':') {
		return Key{}, p.unexpected(`":" and a name`)
	}
	if p.next() != '"' {
		return by(p.bare(true)), nil
	}
	text, err := strconv.QuotedPrefix(p.rest)
	if err != nil {
		return Key{}, p.unexpected("a name in quotes, as a string of Go")
	}
	p.rest = p.rest[len(text):]
	name, err := strconv.Unquote(text)
	if err != nil {
		return Key{}, p.unexpected("a name in quotes, as a string of Go")
	}
	return by(name), nil
}

func (p *keyParser) list(of func(...Key) Key, depth int) (Key, error) {
	if !p.take('(') {
		return Key{}, p.unexpected(`"(" and keys with commas between them`)
	}
	var keys []Key
	for {
		k, err := p.key(depth + 1)
		if err != nil {
			return Key{}, err
		}
		keys = append(keys, k)
		if p.take(')') {
			return of(keys...), nil
		}
		if !p.take(',') {
			return Key{}, p.unexpected(`"," or ")"`)
		}
	}
}

// textOf writes a kind and a name as ParseKey reads them.
func textOf(kind, name string) string {
	if name == "" {
		return kind
	}
	for i := 0; i < len(name); i++ {
		if !isBare(name[i]) {
			return kind + ":" + strconv.Quote(name)
		}
	}
	return kind + ":" + name
}
