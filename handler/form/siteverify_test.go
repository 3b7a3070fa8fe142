package form

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

const captchaSecret = "0xSECRET0of0the0captcha"

// at replaces the service's address.
func at(url string) CaptchaOption { return func(s *siteverify) { s.endpoint = url } }

type service struct {
	name, field string
	new         func(secret string, options ...CaptchaOption) (Captcha, error)
	longest     int
}

var services = []service{
	{"turnstile", "cf-turnstile-response", Turnstile, 2048},
	{"hcaptcha", "h-captcha-response", HCaptcha, 16 << 10},
}

// over returns the captcha over a server that answers by do.
func (x service) over(t *testing.T, do http.HandlerFunc, options ...CaptchaOption) Captcha {
	server := httptest.NewServer(do)
	t.Cleanup(server.Close)
	c, err := x.new(captchaSecret, append(options, at(server.URL+"/siteverify"))...)
	require.NoError(t, err)
	return c
}

func say(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestSiteverifyAsks(t *testing.T) {
	for _, x := range services {
		t.Run(x.name, func(t *testing.T) {
			asked := 0
			c := x.over(t, func(w http.ResponseWriter, r *http.Request) {
				asked++
				require.Equal(t, "POST", r.Method)
				require.Equal(t, "HTTP/1.1", r.Proto)
				require.Equal(t, "/siteverify", r.URL.String(), "no secret in the URL")
				require.Equal(t, typeURLEncoded, r.Header.Get("Content-Type"))
				require.NoError(t, r.ParseForm())
				require.Equal(t, captchaSecret, r.PostFormValue("secret"))
				require.Equal(t, "a-token+/&=%", r.PostFormValue("response"))
				if asked == 1 {
					require.Equal(t, "2001:db8::1", r.PostFormValue("remoteip"))
				} else {
					require.NotContains(t, r.PostForm, "remoteip")
				}
				say(200, `{"success":true,"challenge_ts":"2026-11-30T00:00:00Z","hostname":"example.com","error-codes":[],"action":"","more":{"x":1}}`)(w, r)
			})
			require.NoError(t, c.Verify(t.Context(), "a-token+/&=%", netip.MustParseAddr("2001:db8::1")))
			require.NoError(t, c.Verify(t.Context(), "a-token+/&=%", netip.Addr{}))
			require.Equal(t, 2, asked)
			require.Equal(t, x.field, captchaField(c))

			for _, token := range []string{"", strings.Repeat("x", x.longest+1), "a b", "a\nb", "a\x00", "é"} {
				require.ErrorIs(t, c.Verify(t.Context(), token, netip.Addr{}), ErrBot)
			}
			require.Equal(t, 2, asked, "no such token is worth a call")
		})
	}
}

// Whatever the service answers: only success is success; what a client can bring about is
// his, and never an outage; and nothing secret is in an error.
func TestSiteverifyAnswers(t *testing.T) {
	type kinds []error
	tests := []struct {
		name   string
		status int
		body   string
		want   error
	}{
		{"success", 200, `{"success":true}`, nil},
		{"success with blanks", 200, " \n{ \"success\" : true } \n", nil},
		{"failure", 200, `{"success":false}`, ErrBot},
		{"invalid", 200, `{"success":false,"error-codes":["invalid-input-response"]}`, ErrBot},
		{"a reason unknown here", 200, `{"success":false,"error-codes":["new-reason"]}`, ErrBot},
		{"bad request", 200, `{"success":false,"error-codes":["bad-request"]}`, ErrBot},
		{"of another site", 200, `{"success":false,"error-codes":["sitekey-secret-mismatch"]}`, ErrBot},
		{"twice or late", 200, `{"success":false,"error-codes":["timeout-or-duplicate"]}`, ErrStale},
		{"expired", 200, `{"success":false,"error-codes":["expired-input-response"]}`, ErrStale},
		{"seen", 200, `{"success":false,"error-codes":["already-seen-response"]}`, ErrStale},
		{"wrong secret", 200, `{"success":false,"error-codes":["invalid-input-secret"]}`, stores.ErrMisconfigured},
		{"no secret", 200, `{"success":false,"error-codes":["missing-input-secret"]}`, stores.ErrMisconfigured},
		{"internal error", 200, `{"success":false,"error-codes":["internal-error"]}`, stores.ErrUnavailable},
		{"internal error, and the token is bad", 200, `{"success":false,"error-codes":["internal-error","invalid-input-response"]}`, ErrBot},
		{"400 for the token", 400, `{"success":false,"error-codes":["invalid-input-response"]}`, ErrBot},
		{"400 for the secret", 400, `{"success":false,"error-codes":["invalid-input-secret"]}`, stores.ErrMisconfigured},
		{"400 without a word", 400, "", ErrBot},
		{"400 and success", 400, `{"success":true}`, ErrBot},
		{"413", 413, "", ErrBot},
		{"422", 422, "oops", ErrBot},
		{"401", 401, `{"success":true}`, stores.ErrMisconfigured},
		{"403", 403, "", stores.ErrMisconfigured},
		{"404", 404, "", stores.ErrMisconfigured},
		{"405", 405, "", stores.ErrMisconfigured},
		{"408", 408, "", stores.ErrUnavailable},
		{"429", 429, `{"success":true}`, stores.ErrThrottled},
		{"500", 500, `{"success":true}`, stores.ErrUnavailable},
		{"502", 502, "<html>", stores.ErrUnavailable},
		{"201", 201, `{"success":true}`, stores.ErrUnavailable},
		{"204", 204, "", stores.ErrUnavailable},
		{"nothing", 200, "", stores.ErrUnavailable},
		{"null", 200, "null", stores.ErrUnavailable},
		{"a list", 200, `[{"success":true}]`, stores.ErrUnavailable},
		{"a bare word", 200, "true", stores.ErrUnavailable},
		{"a page", 200, "<html>success: true</html>", stores.ErrUnavailable},
		{"two objects", 200, `{"success":true}{"success":true}`, stores.ErrUnavailable},
		{"half an object", 200, `{"success":true`, stores.ErrUnavailable},
		{"success in words", 200, `{"success":"true"}`, stores.ErrUnavailable},
		{"success in numbers", 200, `{"success":1}`, stores.ErrUnavailable},
		{"success as null", 200, `{"success":null}`, stores.ErrUnavailable},
		{"success in capitals", 200, `{"Success":true}`, stores.ErrUnavailable},
		{"no success", 200, `{"hostname":"example.com"}`, stores.ErrUnavailable},
		{"a number for a host", 200, `{"success":true,"hostname":1}`, stores.ErrUnavailable},
		{"a text for codes", 200, `{"success":false,"error-codes":"invalid-input-response"}`, stores.ErrUnavailable},
		{"too much", 200, `{"success":true,"x":"` + strings.Repeat("x", maxReply) + `"}`, stores.ErrUnavailable},
	}
	for _, x := range services {
		for _, test := range tests {
			t.Run(x.name+"/"+test.name, func(t *testing.T) {
				err := x.over(t, say(test.status, test.body)).Verify(t.Context(), "my-token", netip.MustParseAddr("192.0.2.1"))
				if test.want == nil {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, test.want)
				for _, other := range (kinds{ErrBot, ErrStale, stores.ErrUnavailable, stores.ErrThrottled, stores.ErrMisconfigured}) {
					require.Equal(t, other == test.want, errors.Is(err, other), "%v: %v", err, other)
				}
				for _, text := range []string{captchaSecret, "my-token", "192.0.2.1", "127.0.0.1"} {
					require.NotContains(t, err.Error(), text)
				}
			})
		}
	}
}

func TestSiteverifyNarrowed(t *testing.T) {
	tests := []struct {
		name    string
		options []CaptchaOption
		body    string
		ok      bool
	}{
		{"right host", []CaptchaOption{Hostnames("a.example", "b.example")}, `"hostname":"b.example"`, true},
		{"another host", []CaptchaOption{Hostnames("a.example")}, `"hostname":"evil.example"`, false},
		{"a host below", []CaptchaOption{Hostnames("a.example")}, `"hostname":"x.a.example"`, false},
		{"no host", []CaptchaOption{Hostnames("a.example")}, `"x":1`, false},
		{"right action", []CaptchaOption{Action("contact")}, `"action":"contact"`, true},
		{"another action", []CaptchaOption{Action("contact")}, `"action":"login"`, false},
		{"no action", []CaptchaOption{Action("contact")}, `"x":1`, false},
		{"both", []CaptchaOption{Action("contact"), Hostnames("a.example")}, `"action":"contact","hostname":"a.example"`, true},
		{"one of both", []CaptchaOption{Action("contact"), Hostnames("a.example")}, `"action":"contact"`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := services[0].over(t, say(200, `{"success":true,`+test.body+`}`), test.options...)
			err := c.Verify(t.Context(), "x", netip.Addr{})
			if test.ok {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, ErrBot)
			}
		})
	}
}

func TestCaptchaConfig(t *testing.T) {
	for _, x := range services {
		for _, secret := range []string{"", " x", "x\n", `"x"`, "'x'", "a b", "é"} {
			c, err := x.new(secret)
			require.ErrorIs(t, err, stores.ErrInvalid, "%q", secret)
			require.Nil(t, c)
		}
		_, err := x.new("x", Hostnames(""))
		require.ErrorIs(t, err, stores.ErrInvalid)
		c, err := x.new(captchaSecret)
		require.NoError(t, err)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", c, c, c), captchaSecret)
		require.True(t, strings.HasPrefix(c.(*siteverify).endpoint, "https://"))
	}
	_, err := HCaptcha("x", Action("a"))
	require.ErrorIs(t, err, stores.ErrInvalid)
}

func FuzzReply(f *testing.F) {
	for _, seed := range []string{`{"success":true}`, `{"success":false,"error-codes":["a"]}`, `{"success":true,"success":false}`, `{"Success":true}`, "null", "", `{"success":true}x`, `{"success":true,"hostname":null}`, `{"s\u0075ccess":true}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r, ok := parseReply([]byte(body))
		if !ok {
			return
		}
		if r.success {
			require.Contains(t, body, "true")
		} else {
			require.Contains(t, body, "false")
		}
	})
}
