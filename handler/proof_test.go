package handler

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOriginSecret(t *testing.T) {
	const secret = "correct-horse-battery-staple-32!"
	c := CloudFront(OriginSecret("x-origin-secret", secret))
	for _, tc := range []struct {
		headers []string
		ok      bool
	}{
		{[]string{"X-Origin-Secret: " + secret}, true},
		{nil, false},
		{[]string{"X-Origin-Secret: "}, false},
		{[]string{"X-Origin-Secret: " + secret[:len(secret)-1]}, false},
		{[]string{"X-Origin-Secret: " + secret + "x"}, false},
		{[]string{"X-Origin-Secret: " + strings.ToUpper(secret)}, false},
		{[]string{"X-Origin-Secret: " + secret, "X-Origin-Secret: other"}, false},
		{[]string{"X-Origin-Secret: other", "X-Origin-Secret: " + secret}, false},
		{[]string{"X-Origin-Secret: " + secret + "," + secret}, false},
		{[]string{"X-Origin-Secret: " + strings.Repeat("a", 64<<10)}, false},
	} {
		got, state := ask(c, append(tc.headers, "CloudFront-Viewer-Address: 203.0.113.1:1")...)
		if tc.ok {
			require.Equal(t, addrOK, state)
			require.Equal(t, "203.0.113.1", got)
			continue
		}
		// Fail closed: whatever address is claimed, the peer is counted.
		require.Equal(t, addrShort, state, "%.80q", tc.headers)
		require.Equal(t, testPeer, got)
	}
}

func TestFromPeers(t *testing.T) {
	c := HeaderAddr("X-Real-Ip", FromPeers(mustPrefixes("192.0.2.0/24", "2001:db8:ffff::/48", "::ffff:198.51.100.0/120")...))
	for remote, ok := range map[string]bool{
		"192.0.2.1:1":            true,
		"[::ffff:192.0.2.1]:1":   true,
		"198.51.100.9:1":         true,
		"[2001:db8:ffff::1]:1":   true,
		"[2001:db8:ffff::1%a]:1": true,
		"192.0.3.1:1":            false,
		"[2001:db8::1]:1":        false,
		"@":                      false,
		"":                       false,
	} {
		got, state := askFrom(c, remote, "X-Real-Ip: 203.0.113.1")
		if ok {
			require.Equal(t, addrOK, state, remote)
			require.Equal(t, "203.0.113.1", got)
		} else {
			require.Equal(t, addrShort, state, remote)
			require.NotEqual(t, "203.0.113.1", got)
		}
	}
}

// Nothing that prints a strategy or a proof prints the secret.
func TestSecretIsNeverShown(t *testing.T) {
	const secret = "MARKER-7f3a"
	t.Setenv("SALLYPORT_TEST_SECRET", secret)
	parsed, err := ParseClientIP("cloudfront:secret=X-Origin-Secret,SALLYPORT_TEST_SECRET")
	require.NoError(t, err)
	p := OriginSecret("X-Origin-Secret", secret)
	bad := CloudFront(OriginSecret("X Y", secret))
	tooLong := HeaderAddr("X-Real-Ip", OriginSecret("X-Origin-Secret", strings.Repeat(secret, 1000)))
	var out strings.Builder
	for _, v := range []any{p, CloudFront(p), HeaderAddr("X-Real-Ip", p).Strict(), parsed, bad, tooLong, bad.check(), tooLong.check()} {
		fmt.Fprintf(&out, "%v %+v %#v %s %q %x\n", v, v, v, v, v, v)
		b, err := json.Marshal(v)
		require.NoError(t, err)
		out.Write(b)
	}
	for _, text := range []string{
		"cloudfront:secret=X-Origin-Secret," + secret, "cloudfront:" + secret, "header:X-Real-Ip:" + secret,
		"header:X-Real-Ip:secret=" + secret, "cloudfront:secret=" + secret + ",NOT_SET_ANYWHERE",
	} {
		_, err := ParseClientIP(text)
		require.Error(t, err, text)
		if !strings.Contains(text, ","+secret) { // there it stands where a variable's name is expected
			out.WriteString(err.Error())
		}
	}
	require.NotContains(t, out.String(), secret)
	require.NotContains(t, out.String(), fmt.Sprintf("%x", secret))
	require.Contains(t, out.String(), "cloudfront:secret=X-Origin-Secret,...")
	require.Contains(t, out.String(), "cloudfront:secret=X-Origin-Secret,SALLYPORT_TEST_SECRET")
}
