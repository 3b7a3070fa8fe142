package main

import (
	"cmp"
	"errors"
	"os"
	"strings"

	"github.com/sallyport/sallyport/handler/webhook"
)

// schemeFromEnv chooses who signs how. A receiver of yours has one sender: call, say,
// webhook.Stripe with its secret, and drop this file.
func schemeFromEnv() (webhook.Scheme, error) {
	secret := os.Getenv("SALLYPORT_WEBHOOK_SECRET")
	if secret == "" {
		// A receiver that verifies nothing is never meant.
		return nil, errors.New("SALLYPORT_WEBHOOK_SECRET is missing")
	}
	secrets := []string{secret}
	if next := os.Getenv("SALLYPORT_WEBHOOK_SECRET_NEXT"); next != "" {
		secrets = append(secrets, next)
	}
	switch name, header, _ := strings.Cut(cmp.Or(os.Getenv("SALLYPORT_WEBHOOK_SCHEME"), "standard"), ":"); {
	case name == "hmac":
		return webhook.HMAC(header, secrets...), nil
	case header != "": // none of the others is told a header
	case name == "standard":
		return webhook.Standard(secrets...), nil
	case name == "stripe":
		return webhook.Stripe(secrets...), nil
	case name == "github":
		return webhook.GitHub(secrets...), nil
	case name == "slack":
		return webhook.Slack(secrets...), nil
	}
	return nil, errors.New(`SALLYPORT_WEBHOOK_SCHEME: want "standard", "stripe", "github", "slack" or "hmac:" and a header's name`)
}
