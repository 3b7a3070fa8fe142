package form

import (
	"context"
	"errors"
	"net/netip"
	"time"
)

// captchaTime is how long a captcha may take in all.
const captchaTime = 3 * time.Second

var (
	// ErrBot: the captcha takes whoever solved it for a program. The Decoy answers.
	ErrBot = errors.New("form: the captcha was not solved by a person")

	// ErrStale: the solution has expired, or was shown before, as by a double click. The
	// person is asked to solve another one.
	ErrStale = errors.New("form: the captcha's solution has expired")
)

// Captcha checks what a widget on the page has put into the form. It must be safe for
// concurrent use.
//
// A Captcha may have a method Field() string, which names the field that its widget
// fills in; else that is "captcha-token". The Content-Security-Policy of the page has to
// allow the widget.
type Captcha interface {
	// Verify returns nil for a person, an error that is [ErrBot] or [ErrStale], or why
	// it could not be asked, which should wrap a kind of package stores and must hold
	// neither secret, token nor address: then the post is refused with 503, or
	// Config.CaptchaDown decides. What a client can bring about, such as a token without
	// sense, must be ErrBot and never the last.
	//
	// The token is not empty. The client is the zero Addr if it is not known. ctx ends
	// after 3 seconds, and not when the client hangs up: that would cost a connection
	// which others want to use.
	Verify(ctx context.Context, token string, client netip.Addr) error
}

const defaultCaptchaField = "captcha-token"

func captchaField(c Captcha) string {
	if named, ok := c.(interface{ Field() string }); ok {
		if name := named.Field(); name != "" {
			return name
		}
	}
	return defaultCaptchaField
}
