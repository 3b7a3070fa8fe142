package form

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// A token is, in base64url: its kind, the time at which it was made (milliseconds
// since 1970, big-endian), a nonce, and the HMAC-SHA-256 (RFC 2104) of the form's ID
// and all that.
const (
	kindFirst byte = 1 // in a form that is empty
	kindAgain byte = 2 // in one that somebody had sent: whoever is fast now is no program for that

	nonceSize   = 12
	payloadSize = 1 + 8 + nonceSize
	tokenSize   = payloadSize + sha256.Size
)

// maxSlack is how far the clocks of two instances may be apart, unless a quarter of
// MinFill is less.
const maxSlack = 500 * time.Millisecond

// tokenText reads one text for one token: no line ends within, no bits left over.
var (
	tokenText   = base64.RawURLEncoding.Strict()
	tokenLength = base64.RawURLEncoding.EncodedLen(tokenSize)
)

// key is a secret, and what follows from it.
type key struct {
	secret   []byte
	id       string
	honeypot string // the name of the field
}

func newKey(secret []byte, id string) key {
	k := key{secret: append([]byte(nil), secret...), id: id}
	// A name of its own for each site, so that no list of names to leave out helps; and
	// one that no browser knows how to fill in, as it would an address or a homepage.
	k.honeypot = "subject_" + hex.EncodeToString(k.sum("sallyport form honeypot", nil)[:4])
	return k
}

// sum is the HMAC of a purpose, the form's ID and a payload. Purpose and ID stand
// behind their lengths, so that no two triples are one text.
func (k *key) sum(purpose string, payload []byte) []byte {
	mac := hmac.New(sha256.New, k.secret)
	b := make([]byte, 0, 128)
	b = append(b, byte(len(purpose)))
	b = append(b, purpose...)
	b = append(b, byte(len(k.id)))
	b = append(b, k.id...)
	b = append(b, payload...)
	mac.Write(b)
	return mac.Sum(b[:0])
}

func (k *key) sign(payload []byte) []byte { return k.sum("sallyport form token", payload) }

// mint makes a token.
func (f *Form) mint(kind byte, now time.Time) string {
	b := make([]byte, payloadSize, tokenSize)
	b[0] = kind
	binary.BigEndian.PutUint64(b[1:], uint64(now.UnixMilli()))
	_, _ = rand.Read(b[9:]) // it never fails
	return tokenText.EncodeToString(append(b, f.keys[0].sign(b)...))
}

// token is one that this form signed.
type token struct {
	kind byte
	made int64  // milliseconds since 1970
	id   string // what its uses are counted by
}

// parse returns the token that this form once signed with one of its secrets, or false.
func (f *Form) parse(text string) (token, bool) {
	if len(text) != tokenLength {
		return token{}, false
	}
	var room [tokenSize]byte
	b, err := tokenText.AppendDecode(room[:0], []byte(text))
	if err != nil || len(b) != tokenSize {
		return token{}, false
	}
	payload, sum := b[:payloadSize], b[payloadSize:]
	signed := false
	for i := range f.keys {
		if hmac.Equal(f.keys[i].sign(payload), sum) {
			signed = true
			break
		}
	}
	if !signed || payload[0] != kindFirst && payload[0] != kindAgain {
		return token{}, false
	}
	return token{payload[0], int64(binary.BigEndian.Uint64(payload[1:])), string(payload)}, true
}

// age is what a token's time means now.
type age uint8

const (
	ageRight  age = iota
	ageYoung      // sent before anybody could have filled in the form
	ageFuture     // made by a clock that is ahead of this one: how old it is nobody knows
	ageOld
)

// judge returns the age, and for a young token how long to wait. All in whole
// milliseconds: durations would overflow between clocks that are centuries apart.
func (f *Form) judge(t token, now time.Time) (age, time.Duration) {
	const ms = int64(time.Millisecond)
	slack, old := int64(f.slack)/ms, now.UnixMilli()-t.made
	least := int64(f.minFill-f.slack) / ms
	if time.Duration(least)*time.Millisecond < f.minFill-f.slack {
		least++
	}
	switch {
	case old < -slack:
		return ageFuture, 0
	case old < least:
		return ageYoung, time.Duration(least-old) * time.Millisecond
	case old > int64(f.maxAge)/ms:
		return ageOld, 0
	}
	return ageRight, 0
}
