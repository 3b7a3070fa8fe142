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
	plain     atomic.Bool  // the server does not know PEXPIRE ... NX
	stock     atomic.Bool  // the server does not know Upstash's first line of a script
	noScript  atomic.Int64 // until when chains are taken without it, since none is run
}

var (
	_ stores.Store     = (*Store)(nil)
	_ stores.Batcher   = (*Store)(nil)
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

// maxLog is the largest quota of a log of time stamps. Each hit that is admitted reads
// and writes all stamps that count, at 16 bytes each.
const maxLog = 1000

// Supports returns nil for every valid limit but a log with a quota above 1000, for
// which it returns an error that wraps [errors.ErrUnsupported] and names what to use
// instead. It asks no server.
func (s *Store) Supports(limit stores.Limit) error {
	if err := s.ready(); err != nil {
		return err
	}
	if err := limit.Validate(); err != nil {
		return err
	}
	if limit.Algorithm == stores.Log && limit.Quota > maxLog {
		return fmt.Errorf("upstash: a log of %d: %w: use sliding above %d", limit.Quota, errors.ErrUnsupported, maxLog)
	}
	return nil
}

// check validates a hit and returns what there is to be done for it.
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
	return argsOf(hit), nil
}

// Take counts a hit and decides about it by one exchange with the server: in a fixed
// window without a block by the pipeline if its cost is 1, else by the script; see the
// package for what that costs. A client's first use of the script may take a second
// exchange and one command more, as may the first one after the server forgot its
// scripts; where the server is not Upstash, a third one. A cost above the quota is
// refused without asking, with a Remaining of 0.
func (s *Store) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	d, _, err := s.TakeCertain(ctx, hit)
	return d, err
}

// TakeCertain is Take for package failover, which remembers refusals and what is used
// of a key. certain tells that the times in d are those of the server at a moment
// between the call and its answer, each rounded up by less than a millisecond: what
// is to be over after RetryAfter is not over sooner than RetryAfter less a millisecond
// after the call, nor later than RetryAfter after the answer. It is false if the end of
// a fixed window is not known, be the hit allowed or refused, so that the next one has
// to ask again. Nobody else needs it.
func (s *Store) TakeCertain(ctx context.Context, hit stores.Hit) (d stores.Decision, certain bool, err error) {
	a, err := s.check(hit)
	if err != nil {
		return stores.Decision{}, false, err
	}
	return s.takeChecked(ctx, hit.Key, a)
}

func (s *Store) takeChecked(ctx context.Context, key string, a args) (d stores.Decision, certain bool, err error) {
	if a.never() {
		return stores.Decision{}, false, nil
	}
	if err := ctx.Err(); err != nil {
		return stores.Decision{}, false, err
	}
	if a.single() {
		return s.takeOne(ctx, key, a)
	}
	var (
		out  [1]stores.Decision
		sure [1]bool
	)
	c := chain{Store: s, asked: []asked{{args: a, key: key}}, out: out[:], certain: sure[:], n: 1}
	_, err = c.takeScripted(ctx, c.asked)
	return out[0], sure[0], err
}
