package handler

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

func TestParseClientIP(t *testing.T) {
	t.Setenv("SALLYPORT_TEST_SECRET", "s3cret")
	for _, c := range []struct{ in, want string }{
		{"direct", ""},
		{"cloudrun", ""},
		{"googlelb", ""},
		{"hops:2", ""},
		{"hops:32", ""},
		{"hops:02", "hops:2"},
		{" hops:2 ", "hops:2"},
		{"hops:2 strict", ""},
		{"direct strict", ""},
		{"proxies:10.0.0.0/8", ""},
		{"proxies:10.1.2.3/8, 2001:db8::/32", "proxies:10.0.0.0/8,2001:db8::/32"},
		{"proxies:192.0.2.1,::1", "proxies:192.0.2.1/32,::1/128"},
		{"proxies:::ffff:10.0.0.0/104", "proxies:10.0.0.0/8"},
		{"cloudfront:secret=X-Origin-Secret,SALLYPORT_TEST_SECRET", ""},
		{"cloudfront:secret=x-origin-secret,SALLYPORT_TEST_SECRET strict", "cloudfront:secret=X-Origin-Secret,SALLYPORT_TEST_SECRET strict"},
		{"cloudfront:peers=192.0.2.0/24,2001:db8::/32", ""},
		{"cloudfront:unproven", ""},
		{"header:X-Real-Ip:unproven", ""},
		{"header:cf-connecting-ip:peers=2001:db8::/32", "header:Cf-Connecting-Ip:peers=2001:db8::/32"},
		{"header:X-Real-Ip:secret=X-Origin-Secret,SALLYPORT_TEST_SECRET", ""},
	} {
		if c.want == "" {
			c.want = c.in
		}
		got, err := ParseClientIP(c.in)
		require.NoError(t, err, c.in)
		require.NoError(t, got.check(), c.in)
		require.Equal(t, c.want, got.String(), c.in)

		var fromJSON struct{ IP ClientIP }
		text, err := json.Marshal(c.in)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal([]byte(`{"IP":`+string(text)+`}`), &fromJSON))
		require.Equal(t, c.want, fromJSON.IP.String())
	}

	proven, err := ParseClientIP("cloudfront:secret=X-Origin-Secret,SALLYPORT_TEST_SECRET")
	require.NoError(t, err)
	_, state := ask(proven, "X-Origin-Secret: s3cret", "CloudFront-Viewer-Address: 203.0.113.1:1")
	require.Equal(t, addrOK, state)
	_, state = ask(proven, "X-Origin-Secret: S3cret", "CloudFront-Viewer-Address: 203.0.113.1:1")
	require.Equal(t, addrShort, state)
}

// A header without a proof can be read, and New refuses it.
func TestParseHeaderWithoutProof(t *testing.T) {
	c, err := ParseClientIP("header:X-Real-Ip")
	require.NoError(t, err)
	require.Equal(t, "header:X-Real-Ip", c.String())
	require.ErrorIs(t, c.check(), stores.ErrInvalid)
	require.ErrorContains(t, c.check(), "no proof")
	_, state := ask(c, "X-Real-Ip: 203.0.113.1")
	require.NotEqual(t, addrOK, state)
}

func TestParseClientIPErrors(t *testing.T) {
	t.Setenv("SALLYPORT_TEST_EMPTY", "")
	for in, says := range map[string]string{
		"":                            "want one of direct",
		"Direct":                      "want one of direct",
		"auto":                        "want one of direct",
		"strict":                      "want one of direct",
		"direct:":                     "takes nothing",
		"cloudrun:1":                  "takes nothing",
		"direct strict strict":        "want one of",
		"hops":                        "whole number",
		"hops:":                       "whole number",
		"hops:+2":                     "whole number",
		"hops:-1":                     "whole number",
		"hops:2.5":                    "whole number",
		"hops:0":                      "1 to 32",
		"hops:33":                     "1 to 32",
		"hops:99999999999999999999":   "whole number",
		"proxies":                     "at least one",
		"proxies:":                    "at least one",
		"proxies:10.0.0.0/8,":         "no prefix",
		"proxies:10.0.0.0/33":         "no prefix",
		"proxies:example.com":         "no prefix",
		"proxies:fe80::1%eth0":        "no prefix",
		"proxies:0.0.0.0/0":           "trusts everybody",
		"proxies:10.0.0.0/8,::/0":     "trusts everybody",
		"cloudfront":                  "no proof",
		"cloudfront:":                 "no proof",
		"cloudfront:yes":              "not understood",
		"cloudfront:unproven=1":       "not understood",
		"cloudfront:peers=":           "at least one",
		"cloudfront:secret=":          "environment variable",
		"cloudfront:secret=X":         "environment variable",
		"cloudfront:secret=X,":        "environment variable",
		"cloudfront:secret=X,a b":     "environment variable",
		"cloudfront:secret=X,1A":      "environment variable",
		"cloudfront:secret=X,...":     "environment variable",
		"header":                      "no header name",
		"header::unproven":            "no header name",
		"header:X Y:unproven":         "no header name",
		"header:X-Forwarded-For:":     "no proof",
		"header:Forwarded:unproven":   "list of addresses",
		strings.Repeat("x", 64<<10):   "want one of direct",
		"cloudfront:secret=X,NOT_SET": "NOT_SET, which holds the origin secret, is not set",
		"cloudfront:secret=X,SALLYPORT_TEST_EMPTY": "is not set",
	} {
		c, err := ParseClientIP(in)
		require.ErrorIs(t, err, stores.ErrInvalid, "%.80q", in)
		require.ErrorContains(t, err, says, "%.80q", in)
		require.Less(t, len(err.Error()), 400)
		require.True(t, c.zero())

		kept := Direct()
		require.Error(t, kept.UnmarshalText([]byte(in)))
		require.Equal(t, "direct", kept.String(), "a failed UnmarshalText changes nothing")
	}
}

func FuzzParseClientIP(f *testing.F) {
	f.Setenv("SALLYPORT_TEST_SECRET", "s3cret")
	for _, s := range []string{"direct", "hops:2 strict", "proxies:10.0.0.0/8,2001:db8::/32,::ffff:1.2.3.0/120", "cloudfront:secret=X-A,SALLYPORT_TEST_SECRET",
		"header:X-Real-Ip:peers=::1", "header:x:unproven", "header:x", "", ":", "hops:0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseClientIP(s)
		if err != nil {
			require.ErrorIs(t, err, stores.ErrInvalid)
			require.True(t, c.zero())
			return
		}
		if err := c.check(); err != nil {
			require.Equal(t, errNoProof, err)
		}
		again, err := ParseClientIP(c.String())
		require.NoError(t, err, "%q gave %q", s, c.String())
		require.Equal(t, c.String(), again.String())
		require.Equal(t, c, again)
	})
}
