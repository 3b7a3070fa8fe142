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
	stock     atomic.Bool // the server does not know Upstash's first line of a script
}

var (
	_ stores.Store     = (*Store)(nil)
	_ stores.Peeker    = (*Store)(nil)
	_ stores.Resetter  = (*Store)(nil)
	_ stores.Refunder  = (*Store)(nil)
	_ stores.Debtor    = (*Store)(nil)
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

// check validates a hit and returns what there is to be done for it. A cost above the
// quota comes as one that is so by 1.
func (s *Store) check(hit stores.Hit) (args, error) {
	if err := s.ready(); err != nil {
		return args{}, err
	}
	if err := hit.Validate(); err != nil {
		return args{}, err
	}
	if err := s.Supports(hit.Limit); err != nil {
		return args{}, err
	}
	quota := int64(hit.Limit.Quota)
	return args{
		step:   take,
		quota:  quota,
		cost:   max(1, min(int64(hit.Cost), quota+1)),
		length: milliseconds(hit.Limit.Window),
	}, nil
}

// milliseconds rounds up.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Take counts a hit and decides about it by one exchange with the server: by the
// pipeline if its cost is 1, else by the script, which costs four commands, or three
// for the hit that opens a window and for a refusal. A client's first use of the
// script may take a second exchange and one command more, as may the first one after
// the server forgot its scripts; where the server is not Upstash, a third one. A cost
// above the quota is refused without asking, with a Remaining of 0.
func (s *Store) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	d, _, err := s.TakeCertain(ctx, hit)
	return d, err
}

// TakeCertain is Take for package failover, which remembers refusals and what is used
// of a key's window: certain is false if the end of that window is not known, be the
// hit allowed or refused, so that the next one has to ask again. Nobody else needs it.
func (s *Store) TakeCertain(ctx context.Context, hit stores.Hit) (d stores.Decision, certain bool, err error) {
	a, err := s.check(hit)
	if err != nil {
		return stores.Decision{}, false, err
	}
	if a.cost > a.quota {
		return stores.Decision{}, false, nil
	}
	if err := ctx.Err(); err != nil {
		return stores.Decision{}, false, err
	}
	if a.cost > 1 {
		return s.takeScripted(ctx, hit, a)
	}
	return s.takeOne(ctx, hit, a.length)
}
