package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores/upstash"
)

const token = "marker-0123456789abcdef"

// set is the environment of a test: what it does not name is not there.
func set(t *testing.T, pairs ...string) {
	t.Helper()
	for _, name := range []string{"PORT", "HOST", "K_SERVICE", "SALLYPORT_WHOAMI_TOKEN", "SALLYPORT_CLIENT_IP", "SALLYPORT_POLICIES", "SALLYPORT_KEY_SECRET"} {
		t.Setenv(name, "")
	}
	for i := 0; i < len(pairs); i += 2 {
		t.Setenv(pairs[i], pairs[i+1])
	}
}

func site(t *testing.T) http.Handler {
	t.Helper()
	s, err := configure(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return s
}

func request(peer string, header ...string) *http.Request {
	r := httptest.NewRequest("GET", "/whoami", nil)
	r.RemoteAddr = peer
	r.Header.Set("Whoami-Token", token)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

func ask(t *testing.T, h http.Handler, r *http.Request) (a answer) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, 200, w.Code)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.NotContains(t, w.Body.String(), token)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &a))
	return a
}

func TestWhoIsWho(t *testing.T) {
	tests := []struct {
		name, strategy, peer string
		header               []string
		address              string
		proven               bool
		note                 string // a part of the only one; "" for none
	}{
		{"direct", "direct", "203.0.113.7:5", nil, "203.0.113.7", true, ""},
		{"direct, and forged", "direct", "203.0.113.7:5", []string{"X-Forwarded-For", "192.0.2.1"}, "203.0.113.7", true, "is not read"},
		{"direct, mapped", "direct", "[::ffff:203.0.113.7]:5", nil, "203.0.113.7", true, ""},
		{"a proxy taken for the client", "direct", "10.0.0.3:5", nil, "10.0.0.3", true, "none of the internet"},
		{"cloud run", "cloudrun", "169.254.1.1:5", []string{"X-Forwarded-For", "192.0.2.1, 203.0.113.7"}, "203.0.113.7", true, ""},
		{"cloud run, two lines", "cloudrun", "169.254.1.1:5", []string{"X-Forwarded-For", "192.0.2.1", "X-Forwarded-For", "203.0.113.7"}, "203.0.113.7", true, ""},
		{"one hop too many", "hops:3", "169.254.1.1:5", []string{"X-Forwarded-For", "203.0.113.7"}, "", false, "no address is proven"},
		{"a proxy that is none of ours", "proxies:10.0.0.0/8", "203.0.113.7:5", []string{"X-Forwarded-For", "192.0.2.1"}, "203.0.113.7", true, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set(t, "SALLYPORT_WHOAMI_TOKEN", token, "SALLYPORT_CLIENT_IP", test.strategy)
			a := ask(t, site(t), request(test.peer, test.header...))
			require.Equal(t, test.address, a.Address)
			require.Equal(t, test.proven, a.Proven)
			require.Equal(t, test.strategy, a.Strategy)
			require.Equal(t, test.peer, a.Peer)
			require.Zero(t, a.Status)
			if test.note == "" {
				require.Empty(t, a.Notes)
			} else {
				require.Len(t, a.Notes, 1)
				require.Contains(t, a.Notes[0], test.note)
			}
			require.Len(t, a.Counted, 1)
			require.Equal(t, "contact-form", a.Counted[0].Policy)
			require.Equal(t, "ip", a.Counted[0].Key)
			require.Equal(t, "5/10m", a.Counted[0].Limit)
		})
	}
}

// The keys are those that a guard of the same configuration sends to its store, for one
// policy and for several, and they tell people apart as the guard does.
func TestStoreKeysAreTheGuards(t *testing.T) {
	const policies = `[{"name": "all", "limit": "100/1m", "key": "ip"}, {"name": "key", "limit": "5/1h", "key": "join(header:X-Api-Key,ip)"}]`
	set(t, "SALLYPORT_WHOAMI_TOKEN", token, "SALLYPORT_POLICIES", policies, "SALLYPORT_KEY_SECRET", "s")
	server := upstashtest.New(t)
	store, err := upstash.New(upstash.Config{URL: server.URL, Token: server.Token})
	require.NoError(t, err)
	parsed, err := handler.ParsePolicies([]byte(policies))
	require.NoError(t, err)
	guard, err := handler.New(handler.Config{Store: store, ClientIP: handler.Direct(), Policies: parsed})
	require.NoError(t, err)
	h := site(t)
	keys := func(peer string) (keys []string) {
		a := ask(t, h, request(peer, "X-Api-Key", "marker-key"))
		require.Len(t, a.Counted, 2)
		for _, c := range a.Counted {
			keys = append(keys, c.StoreKey)
			require.NotContains(t, c.StoreKey, "203.0.113")
			require.NotContains(t, c.StoreKey, "marker-key")
		}
		return keys
	}
	require.True(t, guard.Check(request("203.0.113.7:5", "X-Api-Key", "marker-key")).Allowed)
	sent := ""
	for _, command := range server.Commands() {
		sent += strings.Join(command, " ") + " "
	}
	for _, key := range keys("203.0.113.7:5") {
		require.Contains(t, sent, key+" ")
	}
	require.Equal(t, keys("203.0.113.7:5"), keys("203.0.113.7:6"))
	require.NotEqual(t, keys("203.0.113.7:5"), keys("203.0.113.8:5"))
	require.Equal(t, keys("[2001:db8::1]:5"), keys("[2001:db8::ffff:2]:5"), "one line")
	require.NotEqual(t, keys("[2001:db8::1]:5"), keys("[2001:db8:0:1::1]:5"))
}

// It refuses nobody, however often he asks, and says of what can't be read what the
// guard would.
func TestNothingIsCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.json")
	require.NoError(t, os.WriteFile(path, []byte(`[{"name": "mail", "limit": "1/1h", "key": "form:email|email"}]`), 0o600))
	set(t, "SALLYPORT_WHOAMI_TOKEN", token, "SALLYPORT_POLICIES", "@"+path)
	h := site(t)
	for range 50 {
		require.Zero(t, ask(t, h, request("203.0.113.7:5")).Status)
	}
	r := request("203.0.113.7:5")
	r.URL.RawQuery = "email=a@example.com&email=b@example.com"
	a := ask(t, h, r)
	require.Equal(t, 400, a.Status)
	require.Empty(t, a.Counted)
}

// Without the token there is nothing here.
func TestToken(t *testing.T) {
	set(t, "SALLYPORT_WHOAMI_TOKEN", token)
	h := site(t)
	for _, given := range []string{"", " ", token[:len(token)-1], token + "x", strings.ToUpper(token)} {
		r := request("203.0.113.7:5")
		r.Header.Set("Whoami-Token", given)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, 404, w.Code)
		require.Equal(t, "404 page not found\n", w.Body.String())
	}
	r := request("203.0.113.7:5")
	r.URL.Path = "/"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, 404, w.Code)
}

func TestMisconfigured(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end() // should it start all the same
	for name, value := range map[string]string{
		"SALLYPORT_WHOAMI_TOKEN": "short", "SALLYPORT_CLIENT_IP": "whoever", "SALLYPORT_POLICIES": "@nowhere.json", "PORT": "http",
	} {
		set(t, "SALLYPORT_WHOAMI_TOKEN", token)
		t.Setenv(name, value)
		require.ErrorContains(t, run(ended, slog.New(slog.DiscardHandler)), name)
	}
	set(t)
	require.ErrorContains(t, run(ended, slog.New(slog.DiscardHandler)), "SALLYPORT_WHOAMI_TOKEN", "off by default")
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

func TestProgram(t *testing.T) {
	set(t, "SALLYPORT_WHOAMI_TOKEN", token, "PORT", "0")
	ctx, stop := context.WithCancel(t.Context())
	log, ended := &buffer{}, make(chan error, 1)
	go func() { ended <- run(ctx, slog.New(slog.NewTextHandler(log, nil))) }()
	var url string
	require.Eventually(t, func() bool {
		m := regexp.MustCompile(`listening" address=(\S+)`).FindStringSubmatch(log.String())
		if m != nil {
			url = "http://" + m[1] + "/whoami"
		}
		return m != nil
	}, 30*time.Second, time.Millisecond)
	r, err := http.NewRequest("GET", url, nil)
	require.NoError(t, err)
	r.Header.Set("Whoami-Token", token)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	read, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(read), `"address": "127.0.0.1"`)
	require.NotContains(t, log.String(), token)
	stop()
	require.NoError(t, <-ended)
}
