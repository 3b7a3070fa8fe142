package handler

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// sharedStore is a shared store in this process that fails as it is told.
type sharedStore struct {
	*memory.Store
	mu    sync.Mutex
	fail  func(ctx context.Context, hit stores.Hit) error // before anything is done; nil: works
	after func()                                          // after counting
	say   *stores.Decision                                // instead of counting
	keys  []string                                        // of each Take that arrived
}

func newSharedStore(t testing.TB) *sharedStore {
	t.Helper()
	m, err := memory.New(memory.Config{})
	require.NoError(t, err)
	return &sharedStore{Store: m}
}

func (s *sharedStore) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	return s.take(ctx, hit, func() (stores.Decision, error) { return s.Store.Take(ctx, hit) })
}

func (s *sharedStore) TakeOwing(ctx context.Context, hit stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	return s.take(ctx, hit, func() (stores.Decision, error) { return s.Store.TakeOwing(ctx, hit, owed, until) })
}

func (s *sharedStore) take(ctx context.Context, hit stores.Hit, count func() (stores.Decision, error)) (stores.Decision, error) {
	s.mu.Lock()
	s.keys = append(s.keys, hit.Key)
	fail, after := s.fail, s.after
	s.mu.Unlock()
	if fail != nil {
		if err := fail(ctx, hit); err != nil {
			return stores.Decision{}, err
		}
	}
	if s.say != nil {
		return *s.say, nil
	}
	d, err := count()
	if after != nil {
		after()
	}
	return d, err
}

// TakeAll asks hit by hit: the one of memory would pass by what this double does.
func (s *sharedStore) TakeAll(ctx context.Context, hits []stores.Hit, out []stores.Decision) (int, error) {
	for i, hit := range hits {
		d, err := s.Take(ctx, hit)
		if err != nil {
			return i, err
		}
		if out[i] = d; !d.Allowed {
			return i + 1, nil
		}
	}
	return len(hits), nil
}

// broken is what the store fails with, for what has no decision of its own.
func (s *sharedStore) broken(ctx context.Context, hit stores.Hit) error {
	s.mu.Lock()
	fail := s.fail
	s.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(ctx, hit)
}

func (s *sharedStore) Peek(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	if err := s.broken(ctx, hit); err != nil {
		return stores.Decision{}, err
	}
	return s.Store.Peek(ctx, hit)
}

func (s *sharedStore) Reset(ctx context.Context, hit stores.Hit) error {
	if err := s.broken(ctx, hit); err != nil {
		return err
	}
	return s.Store.Reset(ctx, hit)
}

func (s *sharedStore) Refund(ctx context.Context, hit stores.Hit) error {
	if err := s.broken(ctx, hit); err != nil {
		return err
	}
	return s.Store.Refund(ctx, hit)
}

func (s *sharedStore) failWith(fail func(context.Context, stores.Hit) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

func (s *sharedStore) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys)
}

func down(context.Context, stores.Hit) error {
	return &fault.Error{Kind: stores.ErrUnavailable, Text: "connection refused", Definite: true}
}

// blackHole answers nothing until its caller gives up.
func blackHole(ctx context.Context, _ stores.Hit) error {
	<-ctx.Done()
	return &fault.Error{Kind: stores.ErrUnavailable, Text: "no answer", Cause: ctx.Err()}
}

// logBuffer is a log to look at.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) lines() int { return strings.Count(l.String(), "\n") }

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

var errStrange = errors.New("a strange fault")

// onMemory makes a guard on memory alone.
func onMemory(t testing.TB, policies ...Policy) *Guard {
	t.Helper()
	return guardOf(t, Config{Policies: policies})
}

// guardOf fills in what a test does not speak of.
func guardOf(t testing.TB, cfg Config) *Guard {
	t.Helper()
	if cfg.Store == nil {
		m, err := memory.New(memory.Config{})
		require.NoError(t, err)
		cfg.Store = m
	}
	if cfg.ClientIP.zero() {
		cfg.ClientIP = Direct()
	}
	if cfg.Logger == nil {
		cfg.Logger = new(logBuffer).logger()
	}
	g, err := New(cfg)
	require.NoError(t, err)
	return g
}

// bothPaths runs a test over memory alone, over a shared store that works and over
// one that is down.
func bothPaths(t *testing.T, run func(t *testing.T, store stores.Store)) {
	t.Run("memory", func(t *testing.T) {
		m, err := memory.New(memory.Config{})
		require.NoError(t, err)
		run(t, m)
	})
	t.Run("shared", func(t *testing.T) { run(t, newSharedStore(t)) })
	t.Run("shared down", func(t *testing.T) {
		s := newSharedStore(t)
		s.fail = down
		run(t, s)
	})
}

func byIP(name string, quota int) Policy {
	return Policy{Name: name, Limit: stores.FixedWindow(quota, 10*time.Minute), Key: ByIP()}
}

const (
	client  = "203.0.113.9:4711"
	another = "198.51.100.7:4711"
)

// get makes a request from an address, with headers as pairs.
func get(remote string, headers ...string) *http.Request {
	return from(remote, http.MethodGet, "/", headers...)
}

func from(remote, method, target string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = remote
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// serve runs one request through a handler.
func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// ok is a handler that answers 200.
var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("fine")) })

// passes counts how many of n requests reach the handler.
func passes(t testing.TB, g *Guard, n int, request func(i int) *http.Request) int {
	t.Helper()
	passed := 0
	h := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ }))
	for i := range n {
		before := passed
		w := serve(h, request(i))
		if passed == before {
			require.Equal(t, http.StatusTooManyRequests, w.Code)
		}
	}
	return passed
}
