package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores/upstash"
)

func ok(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }

// Whatever a client says of himself, the service hears what the guard knows.
func TestForwardingCantBeForged(t *testing.T) {
	forged := []string{
		"X-Forwarded-For: 6.6.6.6", "x-forwarded-for: 6.6.6.6", "X_Forwarded_For: 6.6.6.6", "X-Forwarded_For: 6.6.6.6", "X-Real-IP: 6.6.6.6",
		"X_REAL_IP: 6.6.6.6", "Forwarded: for=6.6.6.6", "True-Client-IP: 6.6.6.6", "CF-Connecting-IP: 6.6.6.6", "X-Forwarded-Proto: https",
		"X_Forwarded_Proto: https", "X-Forwarded-Host: evil.example", "X-Original-URL: /admin", "Sallyport-Verdict: allowed", "Sallyport_Verdict: allowed", "Proxy: evil.example",
		"X.Forwarded.For: 6.6.6.6", "x~real.ip: 6.6.6.6", "Sallyport.Verdict: allowed",
	}
	service := func(w http.ResponseWriter, r *http.Request) { _ = r.Header.Write(w) }
	tests := []struct {
		clientIP string
		header   []string
		want     string // the client
		proto    string
	}{
		{"direct", nil, "127.0.0.9", "http"},
		{"direct", []string{"Connection: X-Forwarded-For, Sallyport-Verdict"}, "127.0.0.9", "http"},
		{"cloudrun", []string{"X-Forwarded-For: 6.6.6.6, 198.51.100.7", "X-Forwarded-Proto: https"}, "198.51.100.7", "https"},
		{"hops:3", nil, "127.0.0.9", "http"},
	}
	for _, test := range tests {
		clientIP, err := handler.ParseClientIP(test.clientIP)
		require.NoError(t, err)
		s := open(t, `[{"name": "all", "limit": "5/10m", "key": "ip"}, {"name": "told", "limit": "1/10m", "key": "everyone", "mode": "signal"}]`, service,
			func(c *config) { c.clientIP = clientIP })
		for i, verdict := range []string{"allowed", "limited"} {
			header := test.header
			if i == 1 && test.clientIP != "cloudrun" {
				header = append(forged, header...)
			}
			resp, got := s.ask(t, "127.0.0.9", "GET", "/", "", header...)
			require.Equal(t, 200, resp.StatusCode)
			for _, line := range []string{"X-Forwarded-For: " + test.want, "X-Forwarded-Host: shop.example", "X-Forwarded-Proto: " + test.proto, "Sallyport-Verdict: " + verdict} {
				require.Equal(t, 1, strings.Count(got, line+"\r\n"), "%s: %s in\n%s", test.clientIP, line, got)
			}
			if test.clientIP == "direct" {
				require.NotContains(t, got, "6.6.6.6")
			}
			for _, word := range []string{"evil.example", "/admin", "_"} {
				require.NotContains(t, got, word)
			}
			require.Equal(t, 4, strings.Count(strings.ToLower(got), "x-forwarded-")+strings.Count(got, "Sallyport"), got)
		}
	}
}

// A flood, whatever it claims to be, gets through five times; others are served.
func TestFlood(t *testing.T) {
	var served atomic.Int64
	s := open(t, byAddress, func(w http.ResponseWriter, r *http.Request) { served.Add(1); ok(w, r) })
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 10 {
				address := strings.Repeat("9", worker%2+1) + ".0.0." + string(rune('0'+i))
				s.ask(t, "127.0.0.66", []string{"GET", "POST", "HEAD", "OPTIONS"}[i%4], "/", "", "X-Forwarded-For: "+address, "Forwarded: for="+address)
			}
		})
	}
	group.Wait()
	require.EqualValues(t, 5, served.Load())
	resp, body := s.ask(t, "127.0.0.67", "GET", "/", "")
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, "ok", body)
	refused, problem := s.ask(t, "127.0.0.66", "GET", "/", "")
	require.Equal(t, 429, refused.StatusCode)
	require.NotEmpty(t, refused.Header.Get("Retry-After"))
	require.Contains(t, problem, "quota-exceeded")
}

// Two proxies before two services share one limit, and go on with it while the store is
// away.
func TestProxiesShareTheLimit(t *testing.T) {
	store := upstashtest.New(t)
	shared := func(c *config) {
		s, err := upstash.New(upstash.Config{URL: store.URL, Token: store.Token})
		require.NoError(t, err)
		c.store = s
	}
	a, b := open(t, byAddress, ok, shared), open(t, byAddress, ok, shared)
	statuses := map[int]int{}
	for i := range 20 {
		resp, _ := []*scene{a, b}[i%2].ask(t, "127.0.0.66", "GET", "/", "")
		statuses[resp.StatusCode]++
	}
	require.Equal(t, map[int]int{200: 5, 429: 15}, statuses)
	store.SetDown(true)
	statuses = map[int]int{}
	for range 12 {
		resp, _ := a.ask(t, "127.0.0.67", "GET", "/", "")
		statuses[resp.StatusCode]++
	}
	require.Equal(t, map[int]int{200: 5, 429: 7}, statuses)
}

// While the service is down the answer is 502, limits hold, what was counted stays
// counted, and the log says it once.
func TestServiceDown(t *testing.T) {
	s := open(t, byAddress, ok)
	s.service.Close()
	statuses := map[int]int{}
	for range 20 {
		resp, body := s.ask(t, "127.0.0.66", "GET", "/secret-path?token=marker", "")
		statuses[resp.StatusCode]++
		require.NotEmpty(t, resp.Header.Get("RateLimit"))
		require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
		require.NotContains(t, body, s.service.Listener.Addr().String())
		if resp.StatusCode == 502 {
			require.Equal(t, "{\"type\":\"about:blank\",\"title\":\"Bad Gateway\",\"status\":502}\n", body)
		}
	}
	require.Equal(t, map[int]int{502: 5, 429: 15}, statuses)
	require.Equal(t, 1, strings.Count(s.log.String(), "the service does not answer"))
	require.NotContains(t, s.log.String(), "marker")
}

// Who hangs up has been counted, ends the service's work, and is no fault of the service.
func TestHangUp(t *testing.T) {
	came, left := make(chan struct{}, 99), make(chan struct{}, 99)
	s := open(t, byAddress, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/quick" {
			return
		}
		came <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	})
	for range 5 {
		conn, _ := s.raw(t, "127.0.0.66", "GET /slow HTTP/1.1", "Host: a", "", "")
		<-came
		require.NoError(t, conn.Close())
		<-left
	}
	resp, _ := s.ask(t, "127.0.0.66", "GET", "/quick", "")
	require.Equal(t, 429, resp.StatusCode)
	resp, _ = s.ask(t, "127.0.0.67", "GET", "/quick", "")
	require.Equal(t, 200, resp.StatusCode)
	require.NotContains(t, s.log.String(), "does not answer")
}

// A service that cuts its answer short is not made to look whole, and nothing is logged
// of each request.
func TestServiceCutsItsAnswer(t *testing.T) {
	s := open(t, byAddress, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	_, r := s.raw(t, "127.0.0.1", "GET / HTTP/1.1", "Host: a", "", "")
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	got, err := io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "half", string(got))
	require.Empty(t, s.log.String())
}

// A service that takes a request and never answers is a 504, and no place is held for it.
func TestServiceIsSilent(t *testing.T) {
	s := open(t, byAddress, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s.proxy.reverse.Transport.(*http.Transport).ResponseHeaderTimeout = time.Millisecond
	resp, _ := s.ask(t, "127.0.0.66", "GET", "/", "")
	require.Equal(t, 504, resp.StatusCode)
	require.Contains(t, s.log.String(), "the service does not answer")
}

// Who sends a counted body slowly is sent away, before a store or the service hears of him.
func TestSlowBody(t *testing.T) {
	var served atomic.Int64
	s := open(t, `[{"name": "mail", "limit": "5/10m", "key": "form:email"}]`, func(w http.ResponseWriter, r *http.Request) { served.Add(1) })
	s.proxy.bodyTime = 50 * time.Millisecond
	_, r := s.raw(t, "127.0.0.66", "POST / HTTP/1.1", "Host: a", "Content-Type: application/x-www-form-urlencoded", "Content-Length: 99", "", "email=a")
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, 499, resp.StatusCode, "the guard takes him for one who has gone")
	require.Zero(t, served.Load())
	resp, _ = s.ask(t, "127.0.0.67", "POST", "/", "email=a", "Content-Type: application/x-www-form-urlencoded")
	require.Equal(t, 200, resp.StatusCode)
}

// Two readings of one message are none: the service never sees a second request in it.
func TestSmuggling(t *testing.T) {
	var served atomic.Int64
	s := open(t, byAddress, func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
	})
	inner := "GET /admin HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, header := range [][]string{
		{"Content-Length: 0", "Content-Length: 5"},
		{"Transfer-Encoding: chunked", "Transfer-Encoding: identity"},
		{"Transfer-Encoding: xchunked"},
		{"Content-Length : 5"},
	} {
		conn, r := s.raw(t, "127.0.0.66", append(append([]string{"POST / HTTP/1.1", "Host: a"}, header...), "", inner)...)
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		require.GreaterOrEqual(t, resp.StatusCode, 400, header)
		require.NoError(t, conn.Close())
	}
	require.Zero(t, served.Load())
}

func TestConfiguration(t *testing.T) {
	tests := map[string]struct{ name, value, want string }{
		"no service":          {"UPSTREAM", "", "UPSTREAM: it is missing: want one such as http://127.0.0.1:3000"},
		"no scheme":           {"UPSTREAM", "127.0.0.1:3000", "UPSTREAM: no URL: want one such as http://127.0.0.1:3000"},
		"another scheme":      {"UPSTREAM", "ftp://a", "UPSTREAM: neither http:// nor https://: want one such as http://127.0.0.1:3000"},
		"a password":          {"UPSTREAM", "http://u:marker@a", "UPSTREAM: a user or password in it: want one such as http://127.0.0.1:3000"},
		"a path":              {"UPSTREAM", "http://a/b", "UPSTREAM: a path or query in it: want one such as http://127.0.0.1:3000"},
		"no host":             {"UPSTREAM", "http://:80", "UPSTREAM: no host in it: want one such as http://127.0.0.1:3000"},
		"no policies":         {"SALLYPORT_POLICIES", "", "SALLYPORT_POLICIES: they are missing"},
		"no such file":        {"SALLYPORT_POLICIES", "@nowhere.json", "SALLYPORT_POLICIES: open nowhere.json"},
		"no JSON":             {"SALLYPORT_POLICIES", "[{]", "SALLYPORT_POLICIES: handler: invalid policies: no JSON, at byte 3"},
		"a wrong field":       {"SALLYPORT_POLICIES", `[{"name": "a", "limit": "1/1m", "key": "ip"}, {"name": "b", "limits": "1/1m"}]`, `policies[1] "b": invalid field "limits"`},
		"a wrong limit":       {"SALLYPORT_POLICIES", `[{"name": "a", "limit": "often", "key": "ip"}]`, `SALLYPORT_POLICIES: handler: policies[0] "a": field "limit"`},
		"a wrong address":     {"SALLYPORT_CLIENT_IP", "whoever", "SALLYPORT_CLIENT_IP: "},
		"half of a store":     {"UPSTASH_REDIS_REST_URL", "https://a.example", "UPSTASH_REDIS_REST_TOKEN"},
		"a port that is none": {"PORT", "http", "PORT: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			unset(t)
			t.Setenv("UPSTREAM", "http://127.0.0.1:1")
			t.Setenv("SALLYPORT_POLICIES", byAddress)
			t.Setenv(test.name, test.value)
			ended, end := context.WithCancel(t.Context())
			end() // should it start all the same
			err := run(ended, slog.New(slog.DiscardHandler))
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "marker")
		})
	}
}
