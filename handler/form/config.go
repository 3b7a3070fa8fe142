package form

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

const (
	defaultMinFill = 2 * time.Second
	defaultMaxAge  = 2 * time.Hour
	defaultUses    = 5
	defaultMaxBody = 64 << 10

	maxID     = 64
	minSecret = 16
	// longestAge leaves room for the clocks' slack below the longest window of a limit.
	longestAge = 365 * 24 * time.Hour
)

// Config configures [New]. ID and Secret are required.
type Config struct {
	// ID names the form: 1 to 64 bytes of printable ASCII. A token of one form is worth
	// nothing to another.
	ID string

	// Secret signs the tokens: at least 16 bytes, better 32 random ones, the same in all
	// instances. Where it differs people are taken for programs, and the log says so.
	Secret []byte

	// OldSecrets are still believed and sign nothing. To change the secret without
	// turning anybody away: add the new one here in all instances; then make it Secret,
	// with the former one here; a MaxAge later drop that one.
	OldSecrets [][]byte

	// MinFill is how long a person needs at least to fill in the form; default 2 s, less
	// than 0 for none. What comes back faster gets the Decoy. A quarter of it, at most half a second,
	// is let off, because the instance that made the page may have another clock.
	MinFill time.Duration

	// MaxAge is how long a page may be left open; default 2 h, at most a year. It has to
	// be longer than MinFill.
	MaxAge time.Duration

	// Uses is how often one token may be sent; default 5, which is for corrections.
	Uses int

	// Guard limits what the earlier checks let through; nil: no limit. Uses of tokens
	// are counted in its store, so that all instances see them: one more hit for each
	// post that Guard allows. Without it each instance counts uses in memory of its own,
	// at most 50,000 tokens.
	Guard *handler.Guard

	// Captcha is asked last; nil: none. It gets the client's address by Guard.
	Captcha Captcha

	// CaptchaDown decides in place of a captcha that could not be asked: a guard with
	// limits of its own, tighter than those of Guard, and best one for Everyone, because
	// whoever keeps the captcha from being asked passes as often as it allows. nil: such a
	// post gets a 503.
	CaptchaDown *handler.Guard

	// Decoy answers programs. It should be what answers a success, and do nothing
	// else: a redirect to the same page, or the same page. Default: status 200 and a page
	// that says thank you.
	Decoy http.Handler

	// Again answers a post that can't be taken as it is, though it is no program's, and
	// should show the form as it was filled in, with [Form.FieldsAgain]. [Trouble]
	// tells what to say and with which status; Retry-After and Cache-Control: no-store are
	// set, and the body can be read (not for 400, 413 and 415). Default: a page that
	// offers to send the same once more, with a fresh token; or a problem document where
	// the client does not ask for HTML. The default can't show a captcha, so with one it
	// sends people back to the form; nor can it keep files.
	Again http.Handler

	// MaxBody bounds a post, in bytes; default 64 KiB, beyond it 413. The post is held in
	// memory. A Guard whose keys read the body has a bound of its own.
	MaxBody int64

	// Class is the class of the element around the honeypot. Default: none, and a style
	// attribute that puts it out of sight. Where a Content-Security-Policy forbids style
	// attributes, choose a class and give it the declarations of [OutOfSight].
	Class string

	// Logger hears of changes of state, not of requests. Default slog.Default().
	Logger *slog.Logger
}

// usesPolicy counts the uses of tokens; the identity is the token, so that all forms
// over one store can share it.
const usesPolicy = "form-token"

// New returns a form, or an error that wraps [stores.ErrInvalid], or
// errors.ErrUnsupported for a store that can't count for as long as MaxAge. It sends
// nothing anywhere.
func New(cfg Config) (*Form, error) {
	if len(cfg.ID) == 0 || len(cfg.ID) > maxID || !printable(cfg.ID) {
		return nil, fmt.Errorf("form: %w ID: want 1 to %d bytes of printable ASCII", stores.ErrInvalid, maxID)
	}
	fail := func(text string, args ...any) (*Form, error) {
		return nil, fmt.Errorf("form: %q: %w %s", cfg.ID, stores.ErrInvalid, fmt.Sprintf(text, args...))
	}
	f := &Form{
		minFill: cfg.MinFill,
		maxAge:  cfg.MaxAge,
		guard:   cfg.Guard,
		captcha: cfg.Captcha,
		down:    cfg.CaptchaDown,
		decoy:   cfg.Decoy,
		again:   cfg.Again,
		maxBody: cfg.MaxBody,
		class:   cfg.Class,
		logger:  cfg.Logger,
	}
	if f.minFill == 0 {
		f.minFill = defaultMinFill
	}
	if f.maxAge == 0 {
		f.maxAge = defaultMaxAge
	}
	uses := cfg.Uses
	if uses == 0 {
		uses = defaultUses
	}
	if f.maxBody == 0 {
		f.maxBody = defaultMaxBody
	}
	switch {
	case f.maxAge <= max(0, f.minFill) || f.maxAge > longestAge:
		return fail("MaxAge %s: want more than MinFill, which is %s, and at most %s", f.maxAge, f.minFill, longestAge)
	case uses < 0:
		return fail("Uses %d: want 1 or more, or 0 for %d", uses, defaultUses)
	case f.maxBody < 0:
		return fail("MaxBody %d: want 0 (for %d) or more", f.maxBody, defaultMaxBody)
	case !className(f.class):
		return fail("Class: want one name of letters, digits, - and _")
	case f.down != nil && f.captcha == nil:
		return fail("CaptchaDown: it is for a Captcha, and there is none")
	}
	if f.slack = min(f.minFill/4, maxSlack); f.minFill < 0 {
		f.slack, f.minFill = maxSlack, 0
	}
	for i, secret := range append([][]byte{cfg.Secret}, cfg.OldSecrets...) {
		if len(secret) < minSecret {
			field := "Secret"
			if i > 0 {
				field = fmt.Sprintf("OldSecrets[%d]", i-1)
			}
			return fail("%s: %d bytes: want at least %d, such as 32 random ones", field, len(secret), minSecret)
		}
		f.keys = append(f.keys, newKey(secret, cfg.ID))
	}
	if f.logger == nil {
		f.logger = slog.Default()
	}
	if f.decoy == nil {
		f.decoy = http.HandlerFunc(thanks)
	}
	if f.again == nil {
		f.again = http.HandlerFunc(f.showAgain)
	}
	f.captchaField = captchaField(f.captcha)
	if err := f.openUses(uses); err != nil {
		return nil, err
	}
	return f, nil
}

// openUses makes the guard that counts the uses of tokens. A window opens at a token's
// first use and outlasts the token.
func (f *Form) openUses(uses int) error {
	policy := handler.Policy{Name: usesPolicy, Limit: stores.FixedWindow(uses, f.maxAge+2*maxSlack), Key: handler.Manual()}
	var err error
	if f.guard != nil {
		f.uses, err = f.guard.With(policy)
		if err != nil {
			return fmt.Errorf("form: uses of tokens: %w", err)
		}
		return nil
	}
	own, err := memory.New(memory.Config{})
	if err == nil {
		f.uses, err = handler.New(handler.Config{Store: own, Policies: []handler.Policy{policy}, Logger: f.logger})
	}
	if err != nil {
		return fmt.Errorf("form: uses of tokens: %w", err)
	}
	return nil
}

func printable(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// className tells whether s can stand in an attribute and a style sheet as it is.
func className(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_':
		case c >= '0' && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return true
}
