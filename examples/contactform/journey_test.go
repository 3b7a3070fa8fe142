package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler/form"
	"github.com/sallyport/sallyport/stores"
)

// filled is what a browser sends of a page's form when a person has filled in what he
// sees.
func filled(t *testing.T, page string, typed ...string) string {
	t.Helper()
	values := url.Values{}
	for _, e := range elements(t, page) {
		if e.name == "input" || e.name == "textarea" {
			values.Set(e.attr["name"], e.attr["value"])
		}
	}
	for i := 0; i < len(typed); i += 2 {
		require.Contains(t, values, typed[i])
		values.Set(typed[i], typed[i+1])
	}
	return values.Encode()
}

const browser = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// A person loads the page, writes, corrects a mistake at once, and is thanked on a page
// that he may reload. Time is that of a real visit.
func TestVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mailer := &recorder{}
		site := testSite(t, mailer, func(c *config) { c.minFill = 0 })
		page := ask(site, "GET", "/", "")
		time.Sleep(10 * time.Second)
		faulty := ask(site, "POST", "/contact", filled(t, page.Body.String(), "name", "Ada", "email", "ada", "message", "Hello"), formType, browser)
		require.Equal(t, 422, faulty.Code)
		requireAccessible(t, faulty.Body.String())
		thanks := ask(site, "POST", "/contact", filled(t, faulty.Body.String(), "email", "ada@example.com", "message", "Hello"), formType, browser)
		require.Equal(t, sent, thanks.Code)
		require.Equal(t, []Message{{"Ada", "ada@example.com", "Hello"}}, mailer.got)
		for range 3 {
			w := ask(site, "GET", thanks.Header().Get("Location"), "")
			require.Equal(t, 200, w.Code)
			require.Contains(t, w.Body.String(), "<h1>Thank you</h1>")
			requireAccessible(t, w.Body.String())
			requireSecure(t, w.Header())
		}
		require.Len(t, mailer.got, 1)
	})
}

// A program gets what a person gets, to the byte, and sends nothing.
func TestPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mailer := &recorder{}
		site := testSite(t, mailer, func(c *config) { c.minFill = 0 })
		page := ask(site, "GET", "/", "").Body.String()
		person := filled(t, page, "name", "Ada", "email", "ada@example.com", "message", "Hello")
		everything := url.Values{}
		for name := range must(url.ParseQuery(person)) {
			everything.Set(name, "pills")
		}
		for _, accept := range []string{browser, "Accept: application/json", "Accept: */*"} {
			answers := map[string]*httptest.ResponseRecorder{
				"fills in everything": ask(site, "POST", "/contact", everything.Encode(), formType, accept),
				"never loads a page":  ask(site, "POST", "/contact", goodFields, formType, accept),
				"does not wait":       ask(site, "POST", "/contact", filled(t, ask(site, "GET", "/", "").Body.String(), "name", "x"), formType, accept),
			}
			require.Empty(t, mailer.got)
			time.Sleep(3 * time.Second)
			want := ask(site, "POST", "/contact", person, formType, accept)
			require.Len(t, mailer.got, 1)
			mailer.got = nil
			for name, w := range answers {
				require.Equal(t, want.Code, w.Code, name)
				require.Equal(t, want.Result().Header, w.Result().Header, name)
				require.Equal(t, want.Body.String(), w.Body.String(), name)
			}
		}
	})
}

func must(values url.Values, err error) url.Values {
	if err != nil {
		panic(err)
	}
	return values
}

// Whoever left the page open over lunch, or has to wait, sends the same once more.
func TestNothingTypedIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mailer := &recorder{}
		site := testSite(t, mailer, func(c *config) { c.minFill, c.limit = 0, stores.FixedWindow(2, 10*time.Minute) })
		page := ask(site, "GET", "/", "").Body.String()
		typed := []string{"name", "Ada", "email", "ada@example.com", "message", "Hello & <b>"}
		time.Sleep(3 * time.Hour)
		late := ask(site, "POST", "/contact", filled(t, page, typed...), formType, browser)
		require.Equal(t, 409, late.Code)
		require.Contains(t, late.Body.String(), "open for a long time")
		require.Contains(t, late.Body.String(), "\nHello &amp; &lt;b&gt;</textarea>")
		requireAccessible(t, late.Body.String())
		time.Sleep(5 * time.Second)
		again := filled(t, late.Body.String(), "message", "Hello & <b>")
		require.Equal(t, sent, ask(site, "POST", "/contact", again, formType, browser).Code)

		refused := ask(site, "POST", "/contact", again, formType, browser)
		require.Equal(t, 429, refused.Code)
		require.Equal(t, "595", refused.Header().Get("Retry-After"))
		require.Contains(t, refused.Body.String(), "try again in 10 minutes")
		requireAccessible(t, refused.Body.String())
		requireSecure(t, refused.Header())
		time.Sleep(595 * time.Second)
		require.Equal(t, sent, ask(site, "POST", "/contact", filled(t, refused.Body.String(), "message", "Hello & <b>"), formType, browser).Code)
		require.Equal(t, []Message{{"Ada", "ada@example.com", "Hello & <b>"}, {"Ada", "ada@example.com", "Hello & <b>"}}, mailer.got)

		document := ask(site, "POST", "/contact", filled(t, page, typed...), formType, "Accept: application/json")
		require.Equal(t, 409, document.Code)
		require.Equal(t, "application/problem+json", document.Header().Get("Content-Type"))
	})
}

type captchaFunc func(token string) error

func (f captchaFunc) Verify(_ context.Context, token string, _ netip.Addr) error { return f(token) }
func (f captchaFunc) Field() string                                              { return "cf-turnstile-response" }

// With a captcha the page shows it, and the policy lets in that service and no other.
func TestCaptcha(t *testing.T) {
	for _, kind := range []struct{ name, class, host string }{
		{"turnstile", "cf-turnstile", "https://challenges.cloudflare.com"},
		{"hcaptcha", "h-captcha", "https://hcaptcha.com https://*.hcaptcha.com"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Setenv("SALLYPORT_CAPTCHA", kind.name)
			t.Setenv("SALLYPORT_CAPTCHA_SITEKEY", "10000000-ffff_AA")
			t.Setenv("SALLYPORT_CAPTCHA_SECRET", "secret-of-the-captcha")
			c, err := openCaptcha()
			require.NoError(t, err)
			w := ask(testSite(t, &recorder{}, func(x *config) { x.captcha = c }), "GET", "/", "")
			page := w.Body.String()
			require.Contains(t, page, `<div class="`+kind.class+`" data-sitekey="10000000-ffff_AA"></div>`)
			require.NotContains(t, page, "secret-of-the-captcha")
			policy := w.Header().Get("Content-Security-Policy")
			require.Contains(t, policy, "; script-src "+kind.host+"; frame-src "+kind.host)
			require.True(t, strings.HasPrefix(policy, contentSecurityPolicy(captcha{})), "and nothing else is looser")
		})
	}

	mailer := &recorder{}
	verdict := fmt.Errorf("late: %w", form.ErrStale)
	site := testSite(t, mailer, func(c *config) {
		c.captcha = captcha{Captcha: captchaFunc(func(string) error { return verdict }), widget: "<div class=\"cf-turnstile\"></div>\n"}
	})
	w := send(site, "/contact", goodFields, formType, browser)
	require.Equal(t, 409, w.Code)
	require.Contains(t, w.Body.String(), "complete the check")
	require.Contains(t, w.Body.String(), "cf-turnstile", "with a fresh one")
	require.Contains(t, w.Body.String(), `value="ada@example.com"`)
	solved := goodFields + "&cf-turnstile-response=x"
	require.Equal(t, 409, send(site, "/contact", solved, formType, browser).Code)
	verdict = form.ErrBot
	require.Equal(t, sent, send(site, "/contact", solved, formType, browser).Code)
	require.Empty(t, mailer.got)
	verdict = stores.ErrUnavailable
	down := send(site, "/contact", solved, formType, browser)
	require.Equal(t, http.StatusServiceUnavailable, down.Code)
	require.Contains(t, down.Body.String(), `value="ada@example.com"`)
	require.Empty(t, mailer.got)
	verdict = nil
	require.Equal(t, sent, send(site, "/contact", solved, formType, browser).Code)
	require.Len(t, mailer.got, 1)
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "1 second", time.Second: "1 second", 1001 * time.Millisecond: "2 seconds", 119 * time.Second: "119 seconds",
		2 * time.Minute: "2 minutes", 121 * time.Second: "3 minutes", 119 * time.Minute: "119 minutes", 2 * time.Hour: "2 hours", 30 * time.Hour: "30 hours",
	} {
		require.Equal(t, want, words(d), d)
	}
}
