package webhook

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"
)

// leastSecret is the shortest secret that Standard Webhooks allows, in bytes.
const leastSecret = 24

// Standard verifies deliveries by Standard Webhooks
// (https://github.com/standard-webhooks/standard-webhooks, version 1.0.0), also under
// the names that Svix uses: the headers webhook-id, webhook-timestamp and
// webhook-signature, or svix-id and so on. A secret is "whsec_" and base64 of at least
// 24 bytes; the prefix may be left out. Signatures of the version v1 (HMAC-SHA-256)
// count, others (v1a, Ed25519) are passed over.
//
// While a secret is being changed give both. Put the new one last, and take the old one
// away once the sender has stopped using it: marks are kept under the first.
//
// The id is webhook-id. One with a full stop is refused, because the signature can't
// tell where such an id ends.
func Standard(secrets ...string) Scheme {
	return &standard{newKeys("standard", secrets, func(text string) ([]byte, error) {
		if strings.HasPrefix(text, "whpk_") || strings.HasPrefix(text, "whsk_") {
			return nil, errors.New("is a key for Ed25519: want one that begins with whsec_")
		}
		secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
		if err != nil {
			return nil, errors.New("is not whsec_ and base64")
		}
		if len(secret) < leastSecret {
			return nil, errors.New("is shorter than 24 bytes")
		}
		return secret, nil
	})}
}

type standard struct{ keys }

// Verify implements Scheme.
func (s *standard) Verify(h http.Header, body []byte, now time.Time) (string, error) {
	names := [3]string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}
	if h[names[2]] == nil {
		names = [3]string{"Svix-Id", "Svix-Timestamp", "Svix-Signature"}
	}
	var values [3]string
	for i, name := range names {
		var err error
		if values[i], err = field(h, name); err != nil {
			return "", err
		}
	}
	id, stamp := values[0], values[1]
	if strings.Contains(id, ".") {
		return "", errHeaders
	}
	if err := checkTime(stamp, now); err != nil {
		return "", err
	}
	signatures, err := standardSignatures(values[2])
	if err != nil {
		return "", err
	}
	if !s.signed(signatures, []byte(id+"."+stamp+"."), body) {
		return "", errSignature
	}
	return id, nil
}

// standardSignatures reads "v1,base64 v1,base64 v1a,base64".
func standardSignatures(list string) (signatures []signature, err error) {
	entries := 0
	for entry := range strings.SplitSeq(list, " ") {
		if entries++; entries > maxSignatures {
			return nil, errHeaders
		}
		version, text, _ := strings.Cut(entry, ",")
		if s, ok := fromBase64(text); ok && version == "v1" {
			signatures = append(signatures, s)
		}
	}
	if len(signatures) == 0 {
		return nil, errHeaders
	}
	return signatures, nil
}
