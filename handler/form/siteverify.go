package form

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// CaptchaOption narrows what [Turnstile] and [HCaptcha] accept.
type CaptchaOption func(*siteverify)

// Hostnames accepts only what was solved on a page of one of these hosts. Both services
// can be told so in their own settings too.
func Hostnames(names ...string) CaptchaOption {
	return func(s *siteverify) { s.hostnames = append(s.hostnames, names...) }
}

// Action accepts only what a widget of this action has made (data-action). Only
// Turnstile has actions.
func Action(name string) CaptchaOption {
	return func(s *siteverify) { s.action = name }
}

// Turnstile returns a Captcha that asks Cloudflare Turnstile
// (https://developers.cloudflare.com/turnstile/get-started/server-side-validation/),
// whose widget fills in the field "cf-turnstile-response". The secret
// "1x0000000000000000000000000000000AA" passes every token, for tests. An empty secret,
// or one that can't be one, is an error that wraps [stores.ErrInvalid].
//
// There is one attempt, over HTTP/1.1, within 3 seconds; no redirect is followed.
func Turnstile(secret string, options ...CaptchaOption) (Captcha, error) {
	return newSiteverify(siteverify{
		name:     "turnstile",
		endpoint: "https://challenges.cloudflare.com/turnstile/v0/siteverify",
		field:    "cf-turnstile-response",
		longest:  2048,
	}, secret, options)
}

// HCaptcha returns a Captcha that asks hCaptcha (https://docs.hcaptcha.com/#verify-the-user-response-server-side),
// whose widget fills in the field "h-captcha-response". The secret
// "0x0000000000000000000000000000000000000000" passes the token of the test site key
// "10000000-ffff-ffff-ffff-000000000001". The rest is as for [Turnstile].
func HCaptcha(secret string, options ...CaptchaOption) (Captcha, error) {
	return newSiteverify(siteverify{
		name:     "hcaptcha",
		endpoint: "https://api.hcaptcha.com/siteverify",
		field:    "h-captcha-response",
		longest:  16 << 10,
	}, secret, options)
}

// siteverify is the exchange that both services have in common.
type siteverify struct {
	name, endpoint, field string
	longest               int // token, in bytes
	hostnames             []string
	action                string
	secret                func() string // so that no verb of package fmt finds it
	transport             http.RoundTripper
}

func newSiteverify(s siteverify, secret string, options []CaptchaOption) (Captcha, error) {
	if secret == "" || secret != strings.TrimSpace(secret) || strings.ContainsAny(secret, "\"' ") || !printable(secret) {
		return nil, fmt.Errorf("form: %s: %w secret: want it as the service shows it, without quotes or blanks", s.name, stores.ErrInvalid)
	}
	s.secret = func() string { return secret }
	for _, option := range options {
		option(&s)
	}
	if s.action != "" && s.name != "turnstile" {
		return nil, fmt.Errorf("form: %s: %w Action: it has none", s.name, stores.ErrInvalid)
	}
	if slices.Contains(s.hostnames, "") {
		return nil, fmt.Errorf("form: %s: %w Hostnames: an empty one", s.name, stores.ErrInvalid)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	s.transport = &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: captchaTime}).DialContext,
		TLSHandshakeTimeout: captchaTime,
		Protocols:           &protocols,
		// The wall clock tells when a connection is to be used again, also after a freeze.
		IdleConnTimeout: 5 * time.Second,
		// Posts that wait for one of these run into their deadline, which is no pass.
		MaxConnsPerHost:        64,
		MaxIdleConnsPerHost:    64,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 16 << 10,
	}
	return &s, nil
}

// Field names the widget's field.
func (s *siteverify) Field() string { return s.field }

// maxReply bounds an answer, in bytes: one has a few hundred.
const maxReply = 64 << 10

// Verify implements [Captcha].
func (s *siteverify) Verify(ctx context.Context, token string, client netip.Addr) error {
	if token == "" || len(token) > s.longest || strings.Contains(token, " ") || !printable(token) {
		return fmt.Errorf("%w: %s: no such token", ErrBot, s.name)
	}
	values := url.Values{"secret": {s.secret()}, "response": {token}}
	if client.IsValid() {
		values.Set("remoteip", client.String())
	}
	ctx, cancel := context.WithTimeout(ctx, captchaTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, strings.NewReader(values.Encode()))
	if err != nil {
		return s.failed(stores.ErrMisconfigured, "no such endpoint")
	}
	r.Header.Set("Content-Type", typeURLEncoded)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "sallyport")
	// RoundTrip rather than a Client, which follows redirects and prints URLs in its
	// errors. net/http sends again only what it could not send at all.
	response, err := s.transport.RoundTrip(r)
	if err != nil {
		return s.lost(ctx)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	switch {
	case err != nil:
		return s.lost(ctx)
	case len(body) > maxReply:
		return s.failed(stores.ErrUnavailable, "an answer over 64 KiB")
	}
	switch status := response.StatusCode; status {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return s.failed(stores.ErrMisconfigured, fmt.Sprintf("status %d", status))
	case http.StatusTooManyRequests:
		return s.failed(stores.ErrThrottled, "status 429")
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		// The token may have done that, so it must not look like an outage.
		if reply, ok := parseReply(body); ok && !reply.success {
			return s.refused(reply.codes)
		}
		return fmt.Errorf("%w: %s: status %d", ErrBot, s.name, status)
	default:
		return s.failed(stores.ErrUnavailable, fmt.Sprintf("status %d", status))
	}
	reply, ok := parseReply(body)
	switch {
	case !ok:
		return s.failed(stores.ErrUnavailable, "an answer that makes no sense")
	case !reply.success:
		return s.refused(reply.codes)
	case len(s.hostnames) > 0 && !slices.Contains(s.hostnames, reply.hostname):
		return fmt.Errorf("%w: %s: it was solved on another host", ErrBot, s.name)
	case s.action != "" && s.action != reply.action:
		return fmt.Errorf("%w: %s: it was solved for another action", ErrBot, s.name)
	}
	return nil
}

// refused says what the service's error codes mean. Those that tell of the token come
// first: none of them may pass for an outage.
func (s *siteverify) refused(codes []string) error {
	for _, code := range codes {
		switch code {
		case "timeout-or-duplicate", "expired-input-response", "already-seen-response", "invalid-or-already-seen-response":
			return fmt.Errorf("%w: %s: %s", ErrStale, s.name, code)
		case "missing-input-response", "invalid-input-response", "bad-request", "not-using-dummy-passcode", "sitekey-secret-mismatch":
			return fmt.Errorf("%w: %s: %s", ErrBot, s.name, code)
		}
	}
	for _, code := range codes {
		switch code {
		case "missing-input-secret", "invalid-input-secret", "not-using-dummy-secret":
			return s.failed(stores.ErrMisconfigured, code)
		case "internal-error":
			return s.failed(stores.ErrUnavailable, code)
		}
	}
	return fmt.Errorf("%w: %s: a reason unknown here", ErrBot, s.name)
}

func (s *siteverify) failed(kind error, text string) error {
	return fmt.Errorf("form: %s: %w: %s", s.name, kind, text)
}

// lost is the error of an exchange without an answer. The transport's own is left out,
// because it may name addresses.
func (s *siteverify) lost(ctx context.Context) error {
	if ctx.Err() != nil {
		return s.failed(stores.ErrUnavailable, "no answer in time")
	}
	return s.failed(stores.ErrUnavailable, "the connection failed")
}

// reply is what we read of an answer.
type reply struct {
	success          bool
	hostname, action string
	codes            []string
}

// parseReply is strict: one JSON object whose success is true or false, and texts where
// texts belong. Names are taken by their case, which package json on its own does not.
func parseReply(body []byte) (reply, bool) {
	var object map[string]json.RawMessage
	var r reply
	if json.Unmarshal(body, &object) != nil || object == nil {
		return r, false
	}
	switch string(object["success"]) {
	case "true":
		r.success = true
	case "false":
	default:
		return r, false
	}
	for name, to := range map[string]any{"hostname": &r.hostname, "action": &r.action, "error-codes": &r.codes} {
		if value, ok := object[name]; ok && json.Unmarshal(value, to) != nil {
			return r, false
		}
	}
	return r, true
}
