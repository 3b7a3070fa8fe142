package webhook

import (
	"net/http"
	"strings"
	"time"
)

// Stripe verifies deliveries of Stripe by the header Stripe-Signature
// (https://docs.stripe.com/webhooks#verify-manually). A secret is an endpoint's, "whsec_"
// included: Stripe uses the text itself as the key. Signatures of the version v1 count,
// others are passed over. About a change of secrets see [Standard].
//
// The id is the event's, or the SHA-256 of a body without one.
func Stripe(secrets ...string) Scheme {
	return &stripe{newKeys("stripe", secrets, asItIs)}
}

type stripe struct{ keys }

// Verify implements Scheme.
func (s *stripe) Verify(h http.Header, body []byte, now time.Time) (string, error) {
	text, err := field(h, "Stripe-Signature")
	if err != nil {
		return "", err
	}
	stamp, signatures, err := stripeSignatures(text)
	if err != nil {
		return "", err
	}
	if err := checkTime(stamp, now); err != nil {
		return "", err
	}
	if !s.signed(signatures, []byte(stamp+"."), body) {
		return "", errSignature
	}
	return eventID(body, "id"), nil
}

// stripeSignatures reads "t=1700000000,v1=hex,v1=hex,v0=hex". Two times are refused: the
// one that is checked has to be the one that is signed.
func stripeSignatures(list string) (stamp string, signatures []signature, err error) {
	entries := 0
	for entry := range strings.SplitSeq(list, ",") {
		if entries++; entries > maxSignatures {
			return "", nil, errHeaders
		}
		switch name, value, _ := strings.Cut(strings.Trim(entry, " "), "="); name {
		case "t":
			if stamp != "" {
				return "", nil, errHeaders
			}
			stamp = value
		case "v1":
			if s, ok := fromHex(value); ok {
				signatures = append(signatures, s)
			}
		}
	}
	if stamp == "" || len(signatures) == 0 {
		return "", nil, errHeaders
	}
	return stamp, signatures, nil
}
