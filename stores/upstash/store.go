package upstash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport/sallyport/internal/clock"
	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// Store is one Upstash database. Make it with [New] or [FromEnv], once for the whole
// process; it is safe for concurrent use and needs no Close. Its methods return
// ErrMisconfigured if it is nil.
//
// Beside the errors that [stores.Store] names, Take's are of these kinds:
// ErrUnavailable for timeouts, cut connections and answers that make no sense;
// ErrThrottled for a used-up quota of commands or of space; ErrMisconfigured for a
// wrong token, missing rights, a host that is not there, and for a key that something
// else uses. A context that ends when the request is already on its way is an
// ErrUnavailable that wraps the context's error: the hit may have been counted.
type Store struct {
	request   func(context.Context) *http.Request // method, address and headers, no body
	transport http.RoundTripper
	private   bool // the transport is our own: it leaves headers alone
	timeout   time.Duration
	clock     clock.Clock
	replies   sync.Pool // of *[]byte
	windows   *windows
	reports   reports
	plain     atomic.Bool // the server does not know PEXPIRE ... NX
}

var (
	_ stores.Store     = (*Store)(nil)
	_ stores.Peeker    = (*Store)(nil)
	_ stores.Resetter  = (*Store)(nil)
	_ stores.Supporter = (*Store)(nil)
)

// New makes a store and fails on what can be known to be wrong without asking the
// server; the error wraps [stores.ErrMisconfigured] and repeats no value.
func New(cfg Config) (*Store, error) {
	endpoint, err := checkURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	token, err := checkToken(cfg.Token)
	if err != nil {
		return nil, err
	}
	timeout, err := checkTimeout(cfg.Timeout)
	if err != nil {
		return nil, err
	}
	s := &Store{
		request:   requests(endpoint, token),
		transport: cfg.Transport,
		timeout:   timeout,
		windows:   newWindows(),
	}
	s.reports.init(cfg.Logger)
	if s.transport == nil {
		s.transport, s.private = newTransport(timeout), true
	}
	return s, nil
}

// ready is asked first by every method.
func (s *Store) ready() error {
	if s == nil || s.request == nil {
		return &fault.Error{
			Kind: stores.ErrMisconfigured, Definite: true, Lasting: true,
			Text: "upstash: the Store is nil: make one with New or FromEnv",
		}
	}
	return nil
}

// Supports returns nil for fixed windows and cooldowns without a block, and else an
// error that wraps [errors.ErrUnsupported] and names what is served. It asks no
// server.
func (s *Store) Supports(limit stores.Limit) error {
	if err := s.ready(); err != nil {
		return err
	}
	if err := limit.Validate(); err != nil {
		return err
	}
	if limit.Algorithm != stores.Fixed {
		return fmt.Errorf("upstash: a %s limit: %w: use a fixed window or a cooldown, or another store", limit.Algorithm, errors.ErrUnsupported)
	}
	if limit.Block != 0 {
		return fmt.Errorf("upstash: a limit with a block: %w: use a fixed window as long as the block, or another store", errors.ErrUnsupported)
	}
	return nil
}

// check validates a hit and returns its cost and its window in whole milliseconds.
func (s *Store) check(hit stores.Hit) (cost int, ms int64, err error) {
	if err := s.ready(); err != nil {
		return 0, 0, err
	}
	if err := hit.Validate(); err != nil {
		return 0, 0, err
	}
	if err := s.Supports(hit.Limit); err != nil {
		return 0, 0, err
	}
	ms = int64((hit.Limit.Window + time.Millisecond - 1) / time.Millisecond)
	return max(1, hit.Cost), ms, nil
}

// Take counts a hit of cost 1 and decides about it by one exchange with the server.
// A cost above the quota is refused without asking, with a Remaining of 0; a cost
// from 2 to the quota is an error that wraps [errors.ErrUnsupported].
func (s *Store) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	d, _, err := s.TakeCertain(ctx, hit)
	return d, err
}

// TakeCertain is Take for package failover, which remembers refusals: certain is
// false if the decision is a refusal and the end of its window is not sure, so that
// the next hit has to ask again. Nobody else needs it.
func (s *Store) TakeCertain(ctx context.Context, hit stores.Hit) (d stores.Decision, certain bool, err error) {
	cost, ms, err := s.check(hit)
	if err != nil {
		return stores.Decision{}, false, err
	}
	if cost > hit.Limit.Quota {
		return stores.Decision{}, false, nil
	}
	if cost > 1 {
		return stores.Decision{}, false, fmt.Errorf("upstash: a cost of %d: %w: only a cost of 1 is counted", cost, errors.ErrUnsupported)
	}
	if err := ctx.Err(); err != nil {
		return stores.Decision{}, false, err
	}
	return s.takeOne(ctx, hit, ms)
}
