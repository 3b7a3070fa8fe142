package upstash_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

const (
	goodURL   = "https://eu1-calm-owl-12345.upstash.io"
	goodToken = "AXyzToken-that-must-not-show_0123456789"
)

func TestNewRefusesURL(t *testing.T) {
	cases := map[string]string{
		"":                                  "empty",
		"  \n":                              "empty",
		"eu1-calm-owl-12345.upstash.io":     "put https:// before it",
		"eu1-calm-owl-12345.upstash.io:443": "put https:// before it",
		"//host":                            "put https:// before it",
		"https:host":                        "put https:// before it",
		"redis://default:pw@host:6379":      "take the one for REST",
		"rediss://default:pw@host:6379":     "take the one for REST",
		"ftp://host":                        "not https",
		"http://eu1-calm-owl.upstash.io":    "only a loopback host",
		"http://10.0.0.1":                   "only a loopback host",
		"http://localhost.evil.example":     "only a loopback host",
		"http://127.0.0.1.nip.example":      "only a loopback host",
		"https://":                          "no host",
		"https://:443":                      "no host",
		"https://user:secretpw@host":        "user or password",
		"https://secretpw@host":             "user or password",
		"https://host?_token=secretpw":      "a query",
		"https://host?":                     "a query",
		"https://host/#secretpw":            "fragment",
		"https://host#":                     "fragment",
		`"https://host"`:                    "quotes",
		`'https://host'`:                    "quotes",
		"https://ho\nst":                    "can't be read",
		"https://host:port":                 "can't be read",
		"https://host:0":                    "1 to 65535",
		"https://host:70000":                "1 to 65535",
		"https://[::1":                      "can't be read",
		"https://host/%zz":                  "can't be read",
	}
	for raw, want := range cases {
		t.Run(raw, func(t *testing.T) {
			s, err := upstash.New(upstash.Config{URL: raw, Token: goodToken})
			require.Nil(t, s)
			require.ErrorIs(t, err, stores.ErrMisconfigured)
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "secretpw")
			require.NotContains(t, err.Error(), "calm-owl")
			require.NotContains(t, err.Error(), goodToken)
		})
	}
}

func TestNewTakesURL(t *testing.T) {
	for _, raw := range []string{
		goodURL, goodURL + "/", " " + goodURL + "\n", "HTTPS://host", "https://host:8443/prefix/",
		"http://localhost:8079", "http://127.0.0.1:8079", "http://127.9.9.9", "http://[::1]:8079", "http://LOCALHOST",
	} {
		_, err := upstash.New(upstash.Config{URL: raw, Token: goodToken})
		require.NoError(t, err, raw)
	}
}

func TestNewRefusesToken(t *testing.T) {
	cases := map[string]string{
		"":                       "empty",
		" \t\n":                  "empty",
		`"` + goodToken + `"`:    "quotes",
		"'" + goodToken + "'":    "quotes",
		"`" + goodToken + "`":    "quotes",
		"Bearer " + goodToken:    `begins with "Bearer"`,
		"bearer " + goodToken:    `begins with "Bearer"`,
		"Bearer":                 `begins with "Bearer"`,
		"AX yz" + goodToken:      "a blank",
		"AX\nyz" + goodToken:     "a blank",
		"AX\x00yz" + goodToken:   "a blank",
		"AX\u00e4yz" + goodToken: "no printable ASCII",
	}
	for token, want := range cases {
		t.Run(token, func(t *testing.T) {
			s, err := upstash.New(upstash.Config{URL: goodURL, Token: token})
			require.Nil(t, s)
			require.ErrorIs(t, err, stores.ErrMisconfigured)
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), goodToken)
		})
	}
	_, err := upstash.New(upstash.Config{URL: goodURL, Token: " " + goodToken + "\n"})
	require.NoError(t, err, "blanks around a token come with pasting")
	_, err = upstash.New(upstash.Config{URL: goodURL, Token: "BearerOfGoodNews"})
	require.NoError(t, err)
}

func TestNewRefusesTimeout(t *testing.T) {
	_, err := upstash.New(upstash.Config{URL: goodURL, Token: goodToken, Timeout: -time.Second})
	require.ErrorIs(t, err, stores.ErrMisconfigured)
}

func TestFromEnv(t *testing.T) {
	const u, tok, kvu, kvtok = "UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN", "KV_REST_API_URL", "KV_REST_API_TOKEN"
	cases := []struct {
		name string
		env  map[string]string
		want []string // in the error; none: no error
	}{
		{"upstash", map[string]string{u: goodURL, tok: goodToken}, nil},
		{"vercel", map[string]string{kvu: goodURL, kvtok: goodToken}, nil},
		{"upstash wins", map[string]string{u: goodURL, tok: goodToken, kvu: "redis://x", kvtok: `"`}, nil},
		{"nothing", nil, []string{u, tok, kvu, kvtok}},
		{"no token", map[string]string{u: goodURL}, []string{u, tok + " is missing"}},
		{"no url", map[string]string{tok: goodToken}, []string{u + " is missing", tok}},
		{"half a pair and another pair", map[string]string{u: goodURL, kvu: goodURL, kvtok: goodToken}, []string{tok + " is missing"}},
		{"halves of two pairs", map[string]string{u: goodURL, kvtok: goodToken}, []string{tok + " is missing"}},
		{"vercel, no token", map[string]string{kvu: goodURL}, []string{kvtok + " is missing"}},
		{"bad url", map[string]string{u: "rediss://default:" + goodToken + "@calm-owl:6379", tok: goodToken}, []string{u, tok, "REST"}},
		{"swapped", map[string]string{u: goodToken, tok: goodURL}, []string{u, tok, "https://"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			for _, name := range []string{u, tok, kvu, kvtok} {
				t.Setenv(name, tc.env[name])
			}
			s, err := upstash.FromEnv()
			if tc.want == nil {
				require.NoError(t, err)
				require.NotNil(t, s)
				return
			}
			require.Nil(t, s)
			require.ErrorIs(t, err, stores.ErrMisconfigured)
			for _, w := range tc.want {
				require.ErrorContains(t, err, w)
			}
			require.NotContains(t, err.Error(), goodToken)
			require.NotContains(t, err.Error(), "calm-owl")
		})
	}
}

func TestNothingPrintsTheToken(t *testing.T) {
	cfg := upstash.Config{URL: goodURL, Token: goodToken}
	s, err := upstash.New(cfg)
	require.NoError(t, err)
	for _, v := range []any{cfg, &cfg, struct{ C upstash.Config }{cfg}, s} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			require.NotContains(t, fmt.Sprintf(verb, v), goodToken, "%T by %s", v, verb)
			require.NotContains(t, fmt.Sprintf(verb, v), fmt.Sprintf("%x", goodToken), "%T by %s", v, verb)
		}
	}
	for _, v := range []any{cfg, &cfg, struct{ C upstash.Config }{cfg}, s} {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		require.NotContains(t, string(b), goodToken)
	}
}

func TestNilStore(t *testing.T) {
	ctx, hit := t.Context(), stores.Hit{Key: "k", Limit: stores.FixedWindow(5, time.Minute)}
	for name, s := range map[string]*upstash.Store{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Take(ctx, hit)
			require.ErrorIs(t, err, stores.ErrMisconfigured)
			_, certain, err := s.TakeCertain(ctx, hit)
			require.ErrorIs(t, err, stores.ErrMisconfigured)
			require.False(t, certain)
			_, err = s.Peek(ctx, hit)
			require.ErrorIs(t, err, stores.ErrMisconfigured)
			require.ErrorIs(t, s.Reset(ctx, hit), stores.ErrMisconfigured)
			require.ErrorIs(t, s.Refund(ctx, hit), stores.ErrMisconfigured)
			_, err = s.TakeOwing(ctx, hit, 1, time.Second)
			require.ErrorIs(t, err, stores.ErrMisconfigured)
			require.ErrorIs(t, s.Supports(hit.Limit), stores.ErrMisconfigured)
		})
	}
}
