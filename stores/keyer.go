package stores

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"strconv"
	"sync"
	"time"
)

const (
	defaultPrefix = "sallyport:"
	maxPrefix     = 128
	maxName       = 128

	// publicSalt stands in for a secret that was not set. Keys are then as hard to
	// read as a plain hash of the identity, which for an address or an e-mail means
	// that they can be guessed.
	publicSalt = "sallyport public salt, version 1"
)

// stateFormats are the letters of what a store keeps under a key, by algorithm; a
// limit with a block keeps more and has the capital. The version behind it changes
// when what is kept changes, so that two releases never read each other's state.
const (
	stateFormats        = "fsltk"
	stateFormatsBlocked = "FSLTK"
	stateVersion        = "1"
)

// Keyer makes the keys that stores see. It is the only maker of them, so that one
// policy and one identity have one key on every path. It is safe for concurrent
// use.
type Keyer struct {
	prefix string
	macs   sync.Pool // of *macState
}

type macState struct {
	mac     hash.Hash
	scratch []byte
}

// NewKeyer returns a Keyer whose keys begin with prefix, at most 128 bytes of
// printable ASCII; "" means "sallyport:". The secret keys the hash of the
// identities: with an empty one a public salt is used, and whoever reads the store
// can guess addresses and e-mails. The error wraps [ErrInvalid].
func NewKeyer(prefix string, secret []byte) (*Keyer, error) {
	if prefix == "" {
		prefix = defaultPrefix
	}
	if len(prefix) > maxPrefix {
		return nil, fmt.Errorf("%w key prefix: %d bytes: want at most %d", ErrInvalid, len(prefix), maxPrefix)
	}
	if !printable(prefix) {
		return nil, fmt.Errorf("%w key prefix %s: want printable ASCII", ErrInvalid, quote(prefix))
	}
	if len(secret) == 0 {
		secret = []byte(publicSalt)
	}
	secret = append([]byte(nil), secret...)
	k := &Keyer{prefix: prefix}
	k.macs.New = func() any { return &macState{mac: hmac.New(sha256.New, secret)} }
	return k, nil
}

// Key returns the key under which name's limit counts the identity:
//
//	sallyport:contact-form:f1:600000:Q1sWpjOLmE8zX3Z0m1tZPw
//
// prefix, name, format of the state (a letter for the algorithm and a version),
// window in milliseconds, and 128 bits of HMAC-SHA-256 (RFC 2104) over the name and
// the parts of the identity, each with its length before it, so that no two lists
// of parts are alike. A changed Quota keeps the key; a changed algorithm or window
// makes a new one. The result is always a valid key of a [Hit]: a name that is not
// 1 to 128 bytes of printable ASCII is left out of the text and stands in the hash
// alone.
func (k *Keyer) Key(name string, limit Limit, identity ...string) string {
	s := k.macs.Get().(*macState)
	s.mac.Reset()
	s.write(name)
	for _, part := range identity {
		s.write(part)
	}
	b := s.mac.Sum(s.scratch[:0])
	sum := len(b)
	b = append(b, k.prefix...)
	if len(name) <= maxName && printable(name) {
		b = append(b, name...)
	}
	b = append(b, ':', formatLetter(limit))
	b = append(b, stateVersion...)
	b = append(b, ':')
	b = strconv.AppendInt(b, int64((limit.Window+time.Millisecond-1)/time.Millisecond), 10)
	b = append(b, ':')
	b = base64.RawURLEncoding.AppendEncode(b, b[:16])
	key := string(b[sum:])
	s.scratch = b
	k.macs.Put(s)
	return key
}

func (s *macState) write(part string) {
	b := binary.BigEndian.AppendUint64(s.scratch[:0], uint64(len(part)))
	b = append(b, part...)
	s.mac.Write(b)
	s.scratch = b
}

func formatLetter(l Limit) byte {
	switch {
	case int(l.Algorithm) >= len(stateFormats):
		return '?'
	case l.Block != 0:
		return stateFormatsBlocked[l.Algorithm]
	}
	return stateFormats[l.Algorithm]
}

func printable(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
