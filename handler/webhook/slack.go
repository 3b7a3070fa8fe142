package webhook

import (
	"net/http"
	"strings"
	"time"
)

// Slack verifies requests of Slack by the headers X-Slack-Signature and
// X-Slack-Request-Timestamp (https://docs.slack.dev/authentication/verifying-requests-from-slack).
// A secret is an app's signing secret. About a change of secrets see [Standard].
//
// The id is event_id, or the SHA-256 of a body without one, such as a slash command's. A
// [Receiver] answers with a status alone, so it can't give Slack the text that it asks for
// once, with "url_verification", when an address is registered.
func Slack(secrets ...string) Scheme {
	return &slack{newKeys("slack", secrets, asItIs)}
}

type slack struct{ keys }

// Verify implements Scheme.
func (s *slack) Verify(h http.Header, body []byte, now time.Time) (string, error) {
	stamp, err := field(h, "X-Slack-Request-Timestamp")
	if err != nil {
		return "", err
	}
	text, err := field(h, "X-Slack-Signature")
	if err != nil {
		return "", err
	}
	if err := checkTime(stamp, now); err != nil {
		return "", err
	}
	text, versioned := strings.CutPrefix(text, "v0=")
	sent, ok := fromHex(text)
	if !versioned || !ok {
		return "", errHeaders
	}
	if !s.signed([]signature{sent}, []byte("v0:"+stamp+":"), body) {
		return "", errSignature
	}
	return eventID(body, "event_id"), nil
}
