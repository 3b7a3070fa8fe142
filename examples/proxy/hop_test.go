package main

import (
	"bufio"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
)

// Whoever has a field end at the proxy is not counted by it: the service never sees it.
func TestFieldsThatEndHereAreNotCounted(t *testing.T) {
	service := func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("X-Api-Key")) }
	const policies = `[{"name": "caller", "limit": "2/10m", "key": "first(header:X-Api-Key,cookie:session,ip)"}]`
	for _, connection := range []string{"X-Api-Key, Cookie", "close,\tx-api-key , cookie", "keep-alive, X-API-KEY\r\nConnection: Cookie"} {
		s := open(t, policies, service)
		statuses := map[int]int{}
		for i := range 8 {
			made := string(rune('a' + i))
			resp, got := s.ask(t, "127.0.0.66", "GET", "/", "", "X-Api-Key: "+made, "Cookie: session="+made, "Connection: "+connection)
			statuses[resp.StatusCode]++
			require.True(t, resp.StatusCode != 200 || got == "", got)
		}
		require.Equal(t, map[int]int{200: 2, 429: 6}, statuses, connection)
		resp, got := s.ask(t, "127.0.0.66", "GET", "/", "", "X-Api-Key: own")
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, "own", got)
	}
}

// Other spellings of a field that the guard counts by, or of one that makes work of a
// preflight, do not reach the service.
func TestSpellingsOfFields(t *testing.T) {
	s := open(t, `[{"name": "caller", "limit": "5/10m", "key": "header:X-Api-Key"}]`, func(w http.ResponseWriter, r *http.Request) { _ = r.Header.Write(w) })
	for _, method := range []string{"GET", "OPTIONS"} {
		_, got := s.ask(t, "127.0.0.66", method, "/", "", "Origin: a", "Access-Control-Request-Method: POST", "X-Api-Key: own", "X-2nd: kept",
			"X_Api_Key: other", "X.Api.Key: other", "X-Api~Key: other", "X_HTTP_Method_Override: other")
		require.Contains(t, got, "X-Api-Key: own\r\n")
		require.Contains(t, got, "X-2nd: kept\r\n")
		require.NotContains(t, got, "other")
	}
}

// A client can't take from the guard what the proxy before this one says.
func TestAddressCantBeEnded(t *testing.T) {
	s := open(t, `[{"name": "all", "limit": "1/10m", "key": "ip"}]`, ok, func(c *config) { c.clientIP = handler.TrustedHops(1) })
	for i, want := range []int{200, 429, 429} {
		header := []string{"X-Forwarded-For: 198.51.100.7"}
		if i > 0 {
			header = append(header, "Connection: X-Forwarded-For")
		}
		resp, _ := s.ask(t, "127.0.0.1", "GET", "/", "", header...)
		require.Equal(t, want, resp.StatusCode)
	}
}

// HTTP/2 inside of a connection would be requests that nobody counts.
func TestNoTunnelButWebSocket(t *testing.T) {
	for _, upgrade := range []string{"h2c", "TLS/1.0", "websocket, h2c", "h2c\r\nUpgrade: websocket"} {
		s := open(t, byAddress, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") == "" && r.Header.Get("Connection") == "" {
				_, _ = io.WriteString(w, "plain")
				return
			}
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
			w.WriteHeader(http.StatusSwitchingProtocols)
		})
		_, r := s.raw(t, "127.0.0.66", "GET / HTTP/1.1", "Host: a", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABk", "Upgrade: "+upgrade, "", "")
		resp, err := http.ReadResponse(bufio.NewReader(r), nil)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode, upgrade)
		body := make([]byte, len("plain"))
		_, err = io.ReadFull(resp.Body, body)
		require.NoError(t, err)
		require.Equal(t, "plain", string(body))
	}
}

// A target of which two readers make two hosts reaches nobody, and is counted.
func TestOpaqueTarget(t *testing.T) {
	s := open(t, `[{"name": "host", "limit": "1/10m", "key": "header:Host"}]`, func(w http.ResponseWriter, r *http.Request) { t.Error("served", r.URL) })
	for i, want := range []int{400, 429} {
		resp, _ := s.ask(t, "127.0.0.66", "GET", []string{"x:http://other/admin", "x:y"}[i], "")
		require.Equal(t, want, resp.StatusCode)
	}
}
