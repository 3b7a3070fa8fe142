package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// sharedStore is a shared store in this process that fails as it is told.
type sharedStore struct {
	*memory.Store
	mu    sync.Mutex
	fail  func(call, key string) error // before anything is done; nil: works
	after func(call, key string) error // when it was done: the answer is lost
	calls map[string]int
}

func newSharedStore(t testing.TB) *sharedStore {
	t.Helper()
	m, err := memory.New(memory.Config{})
	require.NoError(t, err)
	return &sharedStore{Store: m, calls: make(map[string]int)}
}

func (s *sharedStore) do(call, key string, f func() error) error {
	s.mu.Lock()
	s.calls[call]++
	fail, after := s.fail, s.after
	s.mu.Unlock()
	if fail != nil {
		if err := fail(call, key); err != nil {
			return err
		}
	}
	err := f()
	if after != nil && err == nil {
		err = after(call, key)
	}
	return err
}

func (s *sharedStore) Take(ctx context.Context, hit stores.Hit) (d stores.Decision, err error) {
	err = s.do("take", hit.Key, func() error { d, err = s.Store.Take(ctx, hit); return err })
	return d, err
}

func (s *sharedStore) TakeOwing(ctx context.Context, hit stores.Hit, owed int, until time.Duration) (d stores.Decision, err error) {
	err = s.do("take", hit.Key, func() error { d, err = s.Store.TakeOwing(ctx, hit, owed, until); return err })
	return d, err
}

func (s *sharedStore) Peek(ctx context.Context, hit stores.Hit) (d stores.Decision, err error) {
	err = s.do("peek", hit.Key, func() error { d, err = s.Store.Peek(ctx, hit); return err })
	return d, err
}

func (s *sharedStore) Reset(ctx context.Context, hit stores.Hit) error {
	return s.do("reset", hit.Key, func() error { return s.Store.Reset(ctx, hit) })
}

func (s *sharedStore) set(fail, after func(call, key string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.after = fail, after
}

// made returns how often the store was called.
func (s *sharedStore) made() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, calls := range s.calls {
		n += calls
	}
	return n
}

func down(string, string) error {
	return &fault.Error{Kind: stores.ErrUnavailable, Text: "connection refused", Definite: true}
}

func lost(string, string) error {
	return &fault.Error{Kind: stores.ErrUnavailable, Text: "the answer is lost"}
}

// only lets a fault befall the calls of one policy: its name is part of no key, so the
// n-th of a kind is named instead.
func only(call string, n int, f func(string, string) error) func(string, string) error {
	var seen atomic.Int64
	return func(c, key string) error {
		if c == call && int(seen.Add(1)) == n {
			return f(c, key)
		}
		return nil
	}
}

// guardOver is one instance's guard.
func guardOver(t testing.TB, store stores.Store, policies ...handler.Policy) *handler.Guard {
	t.Helper()
	if len(policies) == 0 {
		policies = []handler.Policy{{Name: "unused", Limit: stores.FixedWindow(1, time.Minute), Key: handler.Manual()}}
	}
	g, err := handler.New(handler.Config{Store: store, ClientIP: handler.Direct(), Policies: policies, KeySecret: []byte("a secret of keys")})
	require.NoError(t, err)
	return g
}

func onMemory(t testing.TB, policies ...handler.Policy) *handler.Guard {
	t.Helper()
	m, err := memory.New(memory.Config{})
	require.NoError(t, err)
	return guardOver(t, m, policies...)
}

func receiver(t testing.TB, cfg Config, handle func(context.Context, Delivery) error) *Receiver {
	t.Helper()
	if cfg.Scheme == nil {
		cfg.Scheme = Standard(testSecret)
	}
	rc, err := New(cfg, handle)
	require.NoError(t, err)
	return rc
}

// counter is a handler that counts, and fails as it is told.
type counter struct {
	n    atomic.Int64
	fail atomic.Bool
}

func (c *counter) handle(context.Context, Delivery) error {
	c.n.Add(1)
	if c.fail.Load() {
		return errSignature
	}
	return nil
}

const testSecret = "whsec_" + "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func mac(key, text string) []byte {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(text))
	return m.Sum(nil)
}

func hexMAC(key, text string) string { return hex.EncodeToString(mac(key, text)) }

func keyOf(secret string) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic(err)
	}
	return string(key)
}

// signed are the headers of a delivery by Standard Webhooks.
func signed(secret, id, body string, at time.Time) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	h := http.Header{}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", stamp)
	h.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac(keyOf(secret), id+"."+stamp+"."+body)))
	return h
}

func request(h http.Header, body, from string) *http.Request {
	r := httptest.NewRequest("POST", "/hook", strings.NewReader(body))
	r.Header = h
	r.RemoteAddr = from + ":4711"
	return r
}

const sender = "192.0.2.1"

// deliver makes a delivery that the test's secret signs now.
func deliver(h http.Handler, id string) *httptest.ResponseRecorder {
	return deliverFrom(h, id, sender)
}

func deliverFrom(h http.Handler, id, from string) *httptest.ResponseRecorder {
	body := fmt.Sprintf(`{"id":%q}`, id)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request(signed(testSecret, id, body, time.Now()), body, from))
	return w
}

// logged is what the process logs.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
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
