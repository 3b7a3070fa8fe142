package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the service streams arrives piece by piece.
func TestStream(t *testing.T) {
	next := make(chan string, 1)
	s := open(t, byAddress, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "36") // which says nothing of when it comes
		for piece := range next {
			_, _ = io.WriteString(w, piece)
			w.(http.Flusher).Flush()
		}
	})
	end := sync.OnceFunc(func() { close(next) })
	t.Cleanup(end) // or the service would not end with a test that failed
	_, r := s.raw(t, "127.0.0.1", "GET /events HTTP/1.1", "Host: a", "", "")
	next <- "data: 1\n\n"
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, `"all";r=4;t=600`, resp.Header.Get("RateLimit"))
	piece := make([]byte, len("data: 1\n\n"))
	for i := range 3 {
		_, err := io.ReadFull(resp.Body, piece) // it came while the service has more to say
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("data: %d\n\n", i+1), string(piece))
		next <- fmt.Sprintf("data: %d\n\n", i+2)
	}
	end()
}

// A WebSocket passes both ways, is counted once, and is refused as anything else is.
func TestUpgrade(t *testing.T) {
	s := open(t, `[{"name": "all", "limit": "1/10m", "key": "ip"}]`, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Sec-WebSocket-Key") != "key" {
			w.WriteHeader(400)
			return
		}
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, strings.ToUpper(line))
		}
	})
	handshake := []string{"GET /socket HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: key", "", ""}
	conn, r := s.raw(t, "127.0.0.1", handshake...)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	require.Equal(t, `"all";r=0;t=600`, resp.Header.Get("RateLimit"))
	for _, word := range []string{"one\n", "two\n"} {
		_, err := io.WriteString(conn, word)
		require.NoError(t, err)
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, strings.ToUpper(word), line)
	}
	_, r = s.raw(t, "127.0.0.1", handshake...)
	resp, err = http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
}

// 1xx answers and trailers pass, and the final answer has the RateLimit fields, which no
// 1xx answer takes away.
func TestEarlyHintsAndTrailers(t *testing.T) {
	s := open(t, byAddress, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.Header().Set("Trailer", "Checksum")
		w.Header().Set("RateLimit", `"own";r=1;t=1`)
		_, _ = io.WriteString(w, "hello")
		w.Header().Set("Checksum", "42")
	})
	_, r := s.raw(t, "127.0.0.1", "GET / HTTP/1.1", "Host: a", "TE: trailers", "", "")
	hints, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusEarlyHints, hints.StatusCode)
	require.Equal(t, "</style.css>; rel=preload", hints.Header.Get("Link"))
	final, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, 200, final.StatusCode)
	body, err := io.ReadAll(final.Body)
	require.NoError(t, err)
	require.Equal(t, "hello", string(body))
	require.Equal(t, "42", final.Trailer.Get("Checksum"))
	require.Equal(t, []string{`"own";r=1;t=1, "all";r=4;t=600`}, final.Header.Values("RateLimit"))
	require.Equal(t, []string{`"all";q=5;w=600`}, final.Header.Values("RateLimit-Policy"))
}

// What a client says behind his body reaches the service too, whoever has read the body.
func TestRequestTrailers(t *testing.T) {
	for _, policies := range []string{byAddress, `[{"name": "mail", "limit": "5/10m", "key": "form:email"}]`} {
		s := open(t, policies, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprint(w, string(body), r.Trailer.Get("Checksum"))
		})
		_, got := s.ask(t, "127.0.0.1", "POST", "/", "", "Content-Type: application/x-www-form-urlencoded", "Trailer: Checksum", "Transfer-Encoding: chunked",
			"", "5\r\nemail\r\n0\r\nChecksum: 42")
		require.Equal(t, "email42", got)
	}
}

// A body of which a policy has read a field reaches the service byte for byte, and so
// does one that no policy reads, whatever it is and however long.
func TestBodiesPassUnchanged(t *testing.T) {
	policies := `[{"name": "all", "limit": "1000/10m", "key": "ip"}, {"name": "mail", "limit": "1/10m", "key": "first(form:email|email, json:user.email|email)"}]`
	service := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Got", fmt.Sprint(r.ContentLength, r.TransferEncoding, r.Header.Get("Content-Type"), r.Header.Get("Accept-Encoding")))
		_, _ = w.Write(body)
	}
	s := open(t, policies, service)
	const form, object = "Content-Type: application/x-www-form-urlencoded", "Content-Type: application/json"
	for i, body := range []string{"email=a%40example.com&x=%C3%A4+&&y", `{ "user" : {"email":"b@example.com" } , "x":1.0 }`} {
		kind := []string{form, object}[i]
		resp, got := s.ask(t, "127.0.0.1", "POST", "/", body, kind)
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, body, got)
		require.Equal(t, fmt.Sprint(len(body), " []", kind[len("Content-Type: "):]), resp.Header.Get("Got"))
		resp, _ = s.ask(t, "127.0.0.1", "POST", "/", strings.Replace(body, "example.com", "EXAMPLE.com", 1), kind)
		require.Equal(t, http.StatusTooManyRequests, resp.StatusCode, "it counted")
	}
	// Two values of the field are nobody's, and the service never sees them.
	resp, _ := s.ask(t, "127.0.0.1", "POST", "/?email=c@example.com", "email=d%40example.com", form)
	require.Equal(t, 400, resp.StatusCode)

	chunked := "5\r\nemail\r\n11\r\n=e%40example.comz\r\n0\r\n\r\n"
	_, r := s.raw(t, "127.0.0.1", "POST / HTTP/1.1", "Host: a", form, "Transfer-Encoding: chunked", "Connection: close", "", chunked)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "email=e%40example.comz", string(got))

	upload := strings.Repeat("\x00\xff\r\n0123456789", 100_000) // far above what keys may read
	plain := open(t, byAddress, service)
	resp, answer := plain.ask(t, "127.0.0.1", "PUT", "/upload", upload, "Content-Type: application/octet-stream")
	require.Equal(t, 200, resp.StatusCode)
	require.True(t, answer == upload)
	resp, _ = s.ask(t, "127.0.0.1", "POST", "/", "email="+strings.Repeat("x", 65<<10), form)
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
}

// A body that no policy counts may take its time, however little a counted one has.
func TestSlowUpload(t *testing.T) {
	half := make(chan struct{})
	s := open(t, byAddress, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 4))
		close(half)
		rest, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, string(rest), err)
	})
	s.proxy.bodyTime = 300 * time.Millisecond
	conn, r := s.raw(t, "127.0.0.1", "PUT / HTTP/1.1", "Host: a", "Content-Length: 8", "", "half")
	<-half
	time.Sleep(2 * s.proxy.bodyTime)
	_, err := io.WriteString(conn, "rest")
	require.NoError(t, err)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "rest<nil>", string(got))
}

// The path reaches the service as it was written.
func TestPathsPassUnchanged(t *testing.T) {
	s := open(t, `[{"name": "all", "limit": "100/10m", "key": "ip"}]`, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.RequestURI+" "+r.Host)
	})
	for _, path := range []string{"/", "/a%2Fb/../c//d?x=%20&x=2", "/%41?", "//double", "/a;b=c", "/?a=1&b"} {
		_, got := s.ask(t, "127.0.0.1", "GET", path, "")
		require.Equal(t, path+" shop.example", got)
	}
	for _, path := range []string{"http://evil.example/x", "HTTP://evil.example:9/x"} {
		_, got := s.ask(t, "127.0.0.1", "GET", path, "")
		require.True(t, strings.HasPrefix(got, "/x "), "%s: the service is where UPSTREAM says: %s", path, got)
	}
	resp, _ := s.ask(t, "127.0.0.1", "CONNECT", "evil.example:443", "")
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
}
