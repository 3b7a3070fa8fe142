package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// Scheme tells whether a delivery was made by whom it claims. [Standard], [Stripe],
// [GitHub], [Slack] and [HMAC] return one each; a bad argument of theirs is an error of
// [New], and such a Scheme verifies nothing.
type Scheme interface {
	// Verify returns the delivery's id if one of the secrets signed the body, by now if
	// the scheme signs a time. The id is made of signed bytes only, since a replay may
	// change all others, and it is the same for each attempt of the sender's; "" means no
	// replay protection. Receivers that share their marks and whose Scheme is not of
	// this package must not meet in one id.
	//
	// It is called before anything is counted, with bodies of anybody, at the same time.
	// The error is shown to nobody.
	Verify(h http.Header, body []byte, now time.Time) (id string, err error)
}

const (
	// tolerance is how far a signed time may be from now, both ways, as the schemes
	// that have one recommend.
	tolerance = 5 * time.Minute

	maxSecrets    = 8       // each costs a pass over the body
	maxSignatures = 32      // in one header; a sender that changes its secret sends two
	maxField      = 4 << 10 // bytes of a header that is looked at
)

var (
	errHeaders   = errors.New("webhook: the headers of the signature are missing, doubled or malformed")
	errTimestamp = errors.New("webhook: the signed time is more than five minutes away")
	errSignature = errors.New("webhook: no signature fits")
)

// keys are the secrets of a scheme.
type keys struct {
	scheme  string
	secrets [][]byte
	err     error // of the arguments
}

func newKeys(scheme string, secrets []string, decode func(string) ([]byte, error)) keys {
	k := keys{scheme: scheme}
	fail := func(text string) keys {
		k.err = fmt.Errorf("%w secrets of %s: %s", stores.ErrInvalid, scheme, text)
		return k
	}
	if len(secrets) == 0 || len(secrets) > maxSecrets {
		return fail(fmt.Sprintf("%d given: want 1 to %d", len(secrets), maxSecrets))
	}
	for i, text := range secrets {
		// A line break comes with what is read from a file, and fits no signature.
		if text == "" || strings.TrimSpace(text) != text {
			return fail(fmt.Sprintf("number %d is empty, or begins or ends with a space or line break", i+1))
		}
		secret, err := decode(text)
		if err != nil {
			return fail(fmt.Sprintf("number %d %s", i+1, err))
		}
		k.secrets = append(k.secrets, secret)
	}
	return k
}

// asItIs is the decoding of schemes whose key is the secret's text.
func asItIs(text string) ([]byte, error) { return []byte(text), nil }

// check is what New asks the schemes of this package.
func (k *keys) check() error { return k.err }

// scope keeps apart the ids of senders that share their marks: one of them could
// otherwise have another's delivery taken for handled by being first to use its id. It
// depends on the first secret, and not on the one that fits, since a replay may leave out
// one of two signatures. 32 bits are too few to tell a guessed secret by.
func (k *keys) scope() string {
	if len(k.secrets) == 0 {
		return k.scheme
	}
	mac := hmac.New(sha256.New, k.secrets[0])
	mac.Write([]byte("sallyport webhook marks"))
	return k.scheme + hex.EncodeToString(mac.Sum(nil)[:4])
}

type signature = [sha256.Size]byte

// signed tells whether one of the signatures is that of the text, in pieces, by one of
// the secrets. It takes the same time whichever it is.
func (k *keys) signed(signatures []signature, pieces ...[]byte) bool {
	if k.err != nil {
		return false
	}
	fits := 0
	var sum signature
	for _, secret := range k.secrets {
		mac := hmac.New(sha256.New, secret)
		for _, piece := range pieces {
			mac.Write(piece)
		}
		mac.Sum(sum[:0])
		for i := range signatures {
			fits |= subtle.ConstantTimeCompare(sum[:], signatures[i][:])
		}
	}
	return fits == 1
}

// field returns a header that has exactly one line of sensible length. Of two lines
// one can't know which the sender signed.
func field(h http.Header, canonical string) (string, error) {
	lines := h[canonical]
	if len(lines) != 1 || lines[0] == "" || len(lines[0]) > maxField {
		return "", errHeaders
	}
	return lines[0], nil
}

// checkTime checks seconds since 1970 in decimal digits.
func checkTime(text string, now time.Time) error {
	if len(text) == 0 || len(text) > 12 {
		return errHeaders
	}
	var seconds int64
	for i := 0; i < len(text); i++ {
		if text[i] < '0' || text[i] > '9' {
			return errHeaders
		}
		seconds = seconds*10 + int64(text[i]-'0')
	}
	if now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return errTimestamp
	}
	return nil
}

func fromHex(text string) (s signature, ok bool) {
	if len(text) != hex.EncodedLen(len(s)) {
		return s, false
	}
	_, err := hex.Decode(s[:], []byte(text))
	return s, err == nil
}

var strictBase64 = base64.StdEncoding.Strict()

func fromBase64(text string) (s signature, ok bool) {
	if len(text) != strictBase64.EncodedLen(len(s)) {
		return s, false
	}
	// The decoder wants room for what the text's length could hold.
	var room [sha256.Size + 1]byte
	n, err := strictBase64.Decode(room[:], []byte(text))
	return signature(room[:len(s)]), err == nil && n == len(s)
}

// digest is the id of a body that has none of its own.
func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// eventID returns the id that the body has in one of the fields, or the body's digest. The
// body is signed: only the sender could write the field twice, or not at all.
func eventID(body []byte, name string) string {
	var fields map[string]json.RawMessage
	var id string
	if json.Unmarshal(body, &fields) != nil || json.Unmarshal(fields[name], &id) != nil || id == "" {
		return digest(body)
	}
	return id
}
