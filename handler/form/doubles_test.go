package form

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// shared is a shared store in this process that counts its calls and fails as told.
type shared struct {
	*memory.Store
	mu    sync.Mutex
	calls int
	fail  error
}

func (s *shared) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	s.mu.Lock()
	s.calls++
	err := s.fail
	s.mu.Unlock()
	if err != nil {
		return stores.Decision{}, err
	}
	return s.Store.Take(ctx, hit)
}

// TakeAll asks hit by hit: the one of memory would pass by what this double does.
func (s *shared) TakeAll(ctx context.Context, hits []stores.Hit, out []stores.Decision) (int, error) {
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

func (s *shared) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *shared) failWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func newShared(t testing.TB) *shared {
	m, err := memory.New(memory.Config{})
	require.NoError(t, err)
	return &shared{Store: m}
}

// newGuard is one instance's guard over the store, by address.
func newGuard(t testing.TB, store stores.Store, quota int) *handler.Guard {
	g, err := handler.New(handler.Config{
		Store:     store,
		ClientIP:  handler.Direct(),
		KeySecret: []byte("a secret of tests"),
		Policies:  []handler.Policy{{Name: "contact", Limit: stores.FixedWindow(quota, 10*time.Minute), Key: handler.ByIP()}},
		Logger:    slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return g
}

// recorder is the handler behind the form.
type recorder struct {
	mu   sync.Mutex
	got  []url.Values
	then func(w http.ResponseWriter, r *http.Request)
}

func (n *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseMultipartForm(1 << 20); err != nil && err != http.ErrNotMultipart {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	n.got = append(n.got, r.PostForm)
	n.mu.Unlock()
	if n.then != nil {
		n.then(w, r)
		return
	}
	success(w, r)
}

func (n *recorder) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.got)
}

// success is what the handler and the Decoy answer.
func success(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Form", "contact")
	http.Redirect(w, r, "/thanks", http.StatusSeeOther)
}

// site is a form with what is behind it.
type site struct {
	*Form
	next *recorder
	log  *logged
}

type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newSite(t testing.TB, cfg Config) *site {
	t.Helper()
	s := &site{next: &recorder{}, log: &logged{}}
	if cfg.ID == "" {
		cfg.ID = "contact"
	}
	if cfg.Secret == nil {
		cfg.Secret = secret
	}
	if cfg.Decoy == nil {
		cfg.Decoy = http.HandlerFunc(success)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	}
	var err error
	s.Form, err = New(cfg)
	require.NoError(t, err)
	return s
}

var (
	tokenValue   = regexp.MustCompile(`name="form-token" value="([A-Za-z0-9_-]+)"`)
	honeypotName = regexp.MustCompile(`name="(subject_[0-9a-f]{8})" value=""`)
)

// tokenOf finds the token in a page.
func tokenOf(t testing.TB, page string) string {
	t.Helper()
	m := tokenValue.FindAllStringSubmatch(page, -1)
	require.Len(t, m, 1, page)
	return m[0][1]
}

// filled is what a browser sends of a form that a person filled in.
func (s *site) filled(t testing.TB, more ...string) url.Values {
	t.Helper()
	page := s.Fields()
	values := url.Values{tokenField: {tokenOf(t, page)}, "name": {"Ada"}, "message": {"Hello <b>&\"' \r\n2"}}
	values.Set(honeypotName.FindStringSubmatch(page)[1], "")
	for i := 0; i < len(more); i += 2 {
		values.Set(more[i], more[i+1])
	}
	return values
}

func request(values url.Values, header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/contact?x=1", strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", typeURLEncoded)
	return with(r, header...)
}

func with(r *http.Request, header ...string) *http.Request {
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	return r
}

func multipartRequest(t testing.TB, values url.Values, files map[string]string) *http.Request {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for name, list := range values {
		for _, value := range list {
			require.NoError(t, w.WriteField(name, value))
		}
	}
	for name, text := range files {
		part, err := w.CreateFormFile(name, "file.txt")
		require.NoError(t, err)
		_, err = part.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	r := httptest.NewRequest(http.MethodPost, "/contact", &b)
	r.Header.Set("Content-Type", w.FormDataContentType())
	return r
}

// serve posts by way of a layer that sets a header, as the real ones do.
func (s *site) serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	w.Header().Set("X-Outer", "kept")
	s.Handler(s.next).ServeHTTP(w, r)
	return w
}

// from gives a request the address of client n.
func from(r *http.Request, n int) *http.Request {
	r.RemoteAddr = fmt.Sprintf("192.0.2.%d:4711", n)
	return r
}

// judgeFunc is a Captcha.
type judgeFunc func(ctx context.Context, token string, client netip.Addr) error

func (f judgeFunc) Verify(ctx context.Context, token string, client netip.Addr) error {
	return f(ctx, token, client)
}

const browser = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"
