package webhook

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the lists of signatures hold is what a plain reading of them finds.
func FuzzSignatures(f *testing.F) {
	for _, v := range vectors() {
		for _, lines := range v.header {
			f.Add(lines[0])
		}
	}
	f.Add("v1,")
	f.Add("t=1,t=2,v1=00")
	f.Add("t=,v1=" + strings.Repeat("00", 32))
	f.Add(strings.Repeat("v1, ", 40))
	f.Fuzz(func(t *testing.T, text string) {
		if signatures, err := standardSignatures(text); err == nil {
			require.NotEmpty(t, signatures)
			require.LessOrEqual(t, len(signatures), maxSignatures)
			for _, s := range signatures {
				require.Contains(t, " "+text+" ", " v1,"+base64.StdEncoding.EncodeToString(s[:])+" ")
			}
		} else {
			require.ErrorIs(t, err, errHeaders)
		}
		if stamp, signatures, err := stripeSignatures(text); err == nil {
			require.NotEmpty(t, stamp)
			require.NotEmpty(t, signatures)
			require.LessOrEqual(t, len(signatures), maxSignatures)
			times := 0
			for part := range strings.SplitSeq(text, ",") {
				if value, ok := strings.CutPrefix(strings.Trim(part, " "), "t="); ok && value != "" {
					times++
					require.Equal(t, value, stamp)
				}
			}
			require.Equal(t, 1, times)
		}
		if s, ok := githubSignature(text); ok {
			require.Equal(t, "sha256="+hex.EncodeToString(s[:]), "sha256="+strings.ToLower(text[7:]))
		}
		if s, ok := anySignature(text); ok && len(text) == 44 {
			require.Equal(t, base64.StdEncoding.EncodeToString(s[:]), text)
		}
	})
}

// Whatever is sent, no scheme panics, and none believes what its secret did not sign.
func FuzzVerify(f *testing.F) {
	for _, v := range vectors() {
		for _, lines := range v.header {
			f.Add(lines[0], lines[0], "id", v.body)
		}
	}
	f.Add("1700000000", "v1,"+strings.Repeat("A", 43)+"=", "a.b", "{}")
	schemes := []Scheme{Standard(testSecret), Stripe("secret"), GitHub("secret"), Slack("secret"), HMAC("X-Signature", "secret")}
	now := time.Unix(1_700_000_000, 0)
	f.Fuzz(func(t *testing.T, stamp, signature, id, body string) {
		h := http.Header{
			"Webhook-Id": {id}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {signature}, "Stripe-Signature": {signature},
			"X-Hub-Signature-256": {signature}, "X-Slack-Signature": {signature}, "X-Slack-Request-Timestamp": {stamp}, "X-Signature": {signature},
		}
		for _, s := range schemes {
			got, err := s.Verify(h, []byte(body), now)
			require.Error(t, err)
			require.Empty(t, got)
		}
		// And one that is signed is believed exactly if its id and time can be read one way.
		if !strings.ContainsAny(id, ".") && id != "" && len(id) <= maxField && len(body) < 1<<16 {
			got, err := schemes[0].Verify(signed(testSecret, id, body, now), []byte(body), now)
			require.NoError(t, err)
			require.Equal(t, id, got)
		}
	})
}

func FuzzEventID(f *testing.F) {
	f.Add([]byte(`{"id":"evt_1"}`))
	f.Add([]byte(`{"id":"a","id":"b"}`))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		require.NotEmpty(t, eventID(body, "id"), "a delivery without an id would have no replay protection")
	})
}
