package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sallyport/sallyport/handler/form"
)

// formSecret signs what the form hands out. Several instances need the same, so one is
// made up only where there is one instance.
func formSecret(alone bool) ([]byte, error) {
	if text := os.Getenv("SALLYPORT_FORM_SECRET"); text != "" {
		return []byte(text), nil
	}
	if !alone || onCloudRun() {
		return nil, errors.New("SALLYPORT_FORM_SECRET is missing: all instances need the same; make one up with openssl rand -hex 32")
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	return secret, nil
}

// minFill is as form.Config has it: less than 0 for none.
func minFill() (time.Duration, error) {
	text := cmp.Or(os.Getenv("SALLYPORT_MIN_FILL"), "2s")
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > time.Hour {
		return 0, fmt.Errorf("SALLYPORT_MIN_FILL: %.20q: want a duration such as 2s, at most 1h, or 0", text)
	}
	if d == 0 {
		return -1, nil
	}
	return d, nil
}

// captcha is the optional one: what checks it, and what the page needs to show it.
type captcha struct {
	form.Captcha        // nil: none
	widget       string // HTML
	sources      string // for the Content-Security-Policy
}

// openCaptcha reads three variables, of which none or all have to be there.
func openCaptcha() (captcha, error) {
	kind, siteKey, secret := os.Getenv("SALLYPORT_CAPTCHA"), os.Getenv("SALLYPORT_CAPTCHA_SITEKEY"), os.Getenv("SALLYPORT_CAPTCHA_SECRET")
	if kind == "" && siteKey == "" && secret == "" {
		return captcha{}, nil
	}
	for i := range siteKey {
		// It stands in an attribute.
		if c := siteKey[i]; (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' {
			return captcha{}, errors.New("SALLYPORT_CAPTCHA_SITEKEY: want it as the service shows it: letters, digits, - and _")
		}
	}
	if siteKey == "" || secret == "" {
		return captcha{}, errors.New("a captcha needs SALLYPORT_CAPTCHA, SALLYPORT_CAPTCHA_SITEKEY and SALLYPORT_CAPTCHA_SECRET")
	}
	var c captcha
	var err error
	switch kind {
	case "turnstile":
		c.Captcha, err = form.Turnstile(secret)
		c.widget = widget("https://challenges.cloudflare.com/turnstile/v0/api.js", "cf-turnstile", siteKey)
		c.sources = "; script-src https://challenges.cloudflare.com; frame-src https://challenges.cloudflare.com"
	case "hcaptcha":
		const hosts = "https://hcaptcha.com https://*.hcaptcha.com"
		c.Captcha, err = form.HCaptcha(secret)
		c.widget = widget("https://js.hcaptcha.com/1/api.js", "h-captcha", siteKey)
		c.sources = "; script-src " + hosts + "; frame-src " + hosts + "; connect-src " + hosts
	default:
		err = fmt.Errorf("%.20q: want turnstile or hcaptcha", kind)
	}
	if err != nil {
		return captcha{}, fmt.Errorf("SALLYPORT_CAPTCHA: %w", err)
	}
	return c, nil
}

func widget(script, class, siteKey string) string {
	return fmt.Sprintf("<div class=\"%s\" data-sitekey=\"%s\"></div>\n<noscript><p>This form has a check against programs that needs JavaScript.</p></noscript>\n<script src=\"%s\" async defer></script>\n", class, siteKey, script)
}
