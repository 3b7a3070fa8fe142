package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
	"github.com/sallyport/sallyport/stores/upstash"

	"github.com/sallyport/sallyport/internal/upstashtest"
)

const (
	ann      = "ann@example.com"
	stranger = "nobody@example.com"
)

// recorder is a Mailer that keeps what it gets. send, if set, decides what becomes of it.
type recorder struct {
	mu   sync.Mutex
	got  []Mail
	send func(ctx context.Context) error
}

func (m *recorder) Send(ctx context.Context, mail Mail) error {
	m.mu.Lock()
	m.got = append(m.got, mail)
	m.mu.Unlock()
	if m.send != nil {
		return m.send(ctx)
	}
	return nil
}

func (m *recorder) mails() []Mail {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Mail(nil), m.got...)
}

// buffer is a log.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// scene is an instance of the program without a network.
type scene struct {
	http.Handler
	site   *site
	mailer *recorder
	log    *buffer
}

// open starts an instance with one account. Its answers come without a wait, unless
// change says so.
func open(t testing.TB, store stores.Store, change ...func(*config)) *scene {
	t.Helper()
	s := &scene{mailer: &recorder{}, log: &buffer{}}
	accounts, err := listAccounts(ann)
	require.NoError(t, err)
	c := config{
		store: store, clientIP: handler.Direct(), limit: stores.FixedWindow(10, 10*time.Minute),
		accounts: accounts, mailer: s.mailer, logger: slog.New(slog.NewTextHandler(s.log, nil)),
	}
	// Not 0: what is sent has to be sent before the floor.
	c.floor = 10 * time.Second
	for _, f := range change {
		f(&c)
	}
	s.site, err = openSite(c)
	require.NoError(t, err)
	s.Handler = s.site.handler()
	return s
}

func inMemory(t testing.TB) stores.Store {
	t.Helper()
	m, err := memory.New(memory.Config{})
	require.NoError(t, err)
	return m
}

func inUpstash(t testing.TB, server *upstashtest.Server, transport http.RoundTripper) stores.Store {
	t.Helper()
	s, err := upstash.New(upstash.Config{URL: server.URL, Token: server.Token, Transport: transport})
	require.NoError(t, err)
	return s
}

// body is what the form sends.
func body(address string) string { return url.Values{"email": {address}}.Encode() }

func request(client, address string) *http.Request {
	r := httptest.NewRequest("POST", "/reset", strings.NewReader(body(address)))
	r.RemoteAddr = client + ":4711"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// ask returns everything that a client sees of the answer.
func (s *scene) ask(r *http.Request) string {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body)
	return fmt.Sprintf("%d %v %q", w.Code, w.Result().Header, body)
}

// askAs is ask as client about address.
func (s *scene) askAs(client, address string) string { return s.ask(request(client, address)) }
