package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
)

const (
	defaultReplay  = 24 * time.Hour
	leastReplay    = 2 * tolerance // a signed time is good for five minutes before and after it
	defaultMaxBody = 1 << 20
)

// Config configures [New].
type Config struct {
	// Scheme verifies deliveries. It is required.
	Scheme Scheme

	// Valid limits deliveries whose signature is right, by its policies: per sender where
	// they are keyed on one, for all of them together with handler.Everyone. Replays and
	// attempts that find their delivery busy or done are not charged. Nil means no limit.
	// A sender that never repeats a delivery, such as GitHub, loses what a policy refuses; with
	// handler.Signal the handler runs and may ask handler.FromContext.
	Valid *handler.Guard

	// Marks is where the marks of deliveries live: its store, its keys' prefix and secret;
	// its policies are not asked. The store has to offer Peek and Reset, as all of the
	// kit's do. Several Receivers may share one. Nil means no replay protection, and so
	// does an id of "" from the Scheme.
	Marks *handler.Guard

	// Replay is for how long a delivery is known to be done: 10 minutes, which is twice
	// what a signed time may be off, or more; default 24 hours. Changing it forgets what
	// was done before.
	Replay time.Duration

	// MaxBody is the largest body in bytes; default 1 MiB. It is held in memory until the
	// handler returns.
	MaxBody int64
}

// Delivery is what a handler gets. It may keep all of it.
type Delivery struct {
	ID     string // as the Scheme tells it
	Header http.Header
	Body   []byte // byte for byte as it was signed
}

// Receiver is an http.Handler for one webhook. Make one with [New], one for a process. It
// is safe for concurrent use.
type Receiver struct {
	scheme   Scheme
	valid    *handler.Guard
	marks    *marks // nil: no replay protection
	failures *failures
	maxBody  int64
	handle   func(context.Context, Delivery) error
}

// New returns a Receiver that runs handle for each delivery that is verified, new and
// within the limits. It returns an error that wraps [stores.ErrInvalid] for a Config that
// can't be meant, a secret that can't be one included, and sends nothing anywhere.
//
// The context of handle ends 30 seconds after the delivery came, or a little before the
// deadline of the request; a sender that hangs up does not end it. After that time
// handle has to return: 5 seconds later another attempt may run it. What handle has
// to keep it should keep itself, since senders wait for seconds only.
func New(cfg Config, handle func(context.Context, Delivery) error) (*Receiver, error) {
	if handle == nil {
		return nil, fmt.Errorf("webhook: %w handler: nil", stores.ErrInvalid)
	}
	if v := reflect.ValueOf(cfg.Scheme); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("webhook: %w Scheme: nil: want one such as webhook.Standard(secret)", stores.ErrInvalid)
	}
	if own, ok := cfg.Scheme.(interface{ check() error }); ok {
		if err := own.check(); err != nil {
			return nil, fmt.Errorf("webhook: %w", err)
		}
	}
	if cfg.Replay == 0 {
		cfg.Replay = defaultReplay
	}
	if cfg.Replay < leastReplay {
		return nil, fmt.Errorf("webhook: %w Replay %s: want 0 (for %s) or at least %s", stores.ErrInvalid, cfg.Replay, defaultReplay, leastReplay)
	}
	if cfg.MaxBody < 0 {
		return nil, fmt.Errorf("webhook: %w MaxBody %d: want 0 (for %d) or more", stores.ErrInvalid, cfg.MaxBody, defaultMaxBody)
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = defaultMaxBody
	}
	rc := &Receiver{scheme: cfg.Scheme, valid: cfg.Valid, maxBody: cfg.MaxBody, handle: handle}
	var err error
	if rc.failures, err = newFailures(cfg.Valid, cfg.Marks); err != nil {
		return nil, err
	}
	// Also without Marks a Replay that no store could serve is a mistake.
	if err := stores.Cooldown(cfg.Replay).Validate(); err != nil {
		return nil, fmt.Errorf("webhook: Replay: %w", err)
	}
	if cfg.Marks != nil {
		if rc.marks, err = newMarks(cfg.Marks, cfg.Scheme, cfg.Replay); err != nil {
			return nil, err
		}
	}
	return rc, nil
}

var errNil = errors.New("webhook: a nil or zero *Receiver: make one with webhook.New")
