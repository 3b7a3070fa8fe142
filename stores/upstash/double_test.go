package upstash_test

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

// secretKey stands for what must show nowhere: it is in every hit of these tests.
const secretKey = "sallyport:SECRETKEY:mallory@example.com"

// others are the limits that are not served by a plain counter, each with a quota of 5
// that is not soon back.
var others = []stores.Limit{
	stores.FixedWindow(5, time.Hour).BlockFor(2 * time.Hour),
	stores.SlidingWindow(5, time.Hour),
	stores.SlidingWindow(5, time.Hour).BlockFor(2 * time.Hour),
	stores.TokenBucket(5, 5*time.Hour),
	stores.TokenBucket(5, 5*time.Hour).BlockFor(2 * time.Hour),
	stores.LeakyBucket(5, 5*time.Hour),
	stores.SlidingLog(5, time.Hour),
	stores.SlidingLog(5, time.Hour).BlockFor(2 * time.Hour),
}

var five = stores.Hit{Key: secretKey, Limit: stores.FixedWindow(5, time.Minute)}

// journal is a log that can be read while it is written.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func open(t testing.TB, url string, change ...func(*upstash.Config)) *upstash.Store {
	t.Helper()
	cfg := upstash.Config{URL: url, Token: upstashtest.DefaultToken, Timeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&cfg)
	}
	s, err := upstash.New(cfg)
	require.NoError(t, err)
	return s
}

func timeout(d time.Duration) func(*upstash.Config) {
	return func(c *upstash.Config) { c.Timeout = d }
}

func logTo(j *journal) func(*upstash.Config) {
	return func(c *upstash.Config) { c.Logger = slog.New(slog.NewTextHandler(j, nil)) }
}

// noSecret looks for the token and the key, plain and as base64.
func noSecret(t testing.TB, text string) {
	t.Helper()
	for _, s := range []string{upstashtest.DefaultToken, "SECRETKEY", "mallory"} {
		require.NotContains(t, text, s)
		require.NotContains(t, text, base64.StdEncoding.EncodeToString([]byte(s)))
	}
	require.NotContains(t, text, "Bearer")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// onBoth runs a test over the embedded Redis and over a real redis-server.
func onBoth(t *testing.T, f func(t *testing.T, srv *upstashtest.Server)) {
	t.Run("miniredis", func(t *testing.T) { f(t, upstashtest.New(t)) })
	t.Run("redis-server", func(t *testing.T) { f(t, upstashtest.NewReal(t)) })
}
