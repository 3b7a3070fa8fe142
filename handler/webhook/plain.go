package webhook

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// GitHub verifies deliveries of GitHub by the header X-Hub-Signature-256
// (https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries). A
// secret is the text that the webhook was given. About a change of secrets see
// [Standard].
//
// GitHub signs no time, so an old delivery verifies for ever, and none of the headers, so
// the id is the SHA-256 of the body and not X-GitHub-Delivery, which a replay may choose.
// Config.Replay is therefore all that holds a replay off, and may be long. GitHub does
// not repeat a delivery by itself: let Config.Valid be generous, or Signal.
func GitHub(secrets ...string) Scheme {
	return &plain{newKeys("github", secrets, asItIs), "X-Hub-Signature-256", githubSignature}
}

// HMAC verifies deliveries whose header of this name holds the HMAC-SHA-256 of the body
// and nothing else: in hexadecimal, with or without "sha256=" before it, or in base64. A
// secret's text is the key. About a change of secrets see [Standard].
//
// Nothing but the body is signed, so the id is its SHA-256: two events with the same bytes
// are one, for as long as Config.Replay. If a sender repeats bodies and means it, wrap
// the Scheme in one that returns another id, or leave Config.Marks nil.
func HMAC(header string, secrets ...string) Scheme {
	p := &plain{newKeys("hmac", secrets, asItIs), textproto.CanonicalMIMEHeaderKey(header), anySignature}
	if p.err == nil && !isToken(header) {
		p.err = fmt.Errorf("%w header of HMAC: want the name of one", stores.ErrInvalid)
	}
	return p
}

// plain is a scheme that signs the body and nothing else.
type plain struct {
	keys
	header string
	read   func(string) (signature, bool)
}

// Verify implements Scheme.
func (p *plain) Verify(h http.Header, body []byte, _ time.Time) (string, error) {
	text, err := field(h, p.header)
	if err != nil {
		return "", err
	}
	sent, ok := p.read(text)
	if !ok {
		return "", errHeaders
	}
	if !p.signed([]signature{sent}, body) {
		return "", errSignature
	}
	return digest(body), nil
}

func githubSignature(text string) (signature, bool) {
	text, prefixed := strings.CutPrefix(text, "sha256=")
	s, ok := fromHex(text)
	return s, ok && prefixed
}

func anySignature(text string) (signature, bool) {
	if s, ok := fromHex(strings.TrimPrefix(text, "sha256=")); ok {
		return s, true
	}
	return fromBase64(text)
}

// isToken tells a header's name (RFC 9110 section 5.6.2).
func isToken(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}
