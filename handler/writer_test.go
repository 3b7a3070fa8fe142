package handler

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// server runs a handler behind a guard on a real server, whose error log must stay
// empty.
func server(t *testing.T, quota int, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	errors := new(logBuffer)
	s := httptest.NewUnstartedServer(onMemory(t, byIP("p", quota)).Handler(h))
	s.Config.ErrorLog = log.New(errors, "", 0)
	s.Start()
	t.Cleanup(func() {
		s.Close()
		require.Empty(t, errors.String())
	})
	return s
}

// The writer is the server's own.
func TestWriterIsNotWrapped(t *testing.T) {
	w := httptest.NewRecorder()
	onMemory(t, byIP("p", 1)).Handler(http.HandlerFunc(func(got http.ResponseWriter, _ *http.Request) {
		require.Same(t, w, got)
	})).ServeHTTP(w, get(client))
}

func TestStreaming(t *testing.T) {
	release := make(chan struct{})
	s := server(t, 9, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if c.SetWriteDeadline(time.Now().Add(time.Minute)) != nil || c.SetReadDeadline(time.Now().Add(time.Minute)) != nil || c.EnableFullDuplex() != nil {
			t.Error("the ResponseController does not reach the connection")
		}
		_, isFlusher := w.(http.Flusher)
		_, isReaderFrom := w.(io.ReaderFrom)
		if !isFlusher || !isReaderFrom {
			t.Error("the writer has lost its methods")
		}
		fmt.Fprint(w, "data: 1\n\n")
		if err := c.Flush(); err != nil {
			t.Error(err)
		}
		<-release
		_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("data: 2\n\n"))
	})
	response, err := s.Client().Get(s.URL)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, `"p";r=8;t=600`, response.Header.Get("RateLimit"), "there before the first byte")
	line, err := bufio.NewReader(response.Body).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "data: 1\n", line)
	close(release)
}

func TestHijack(t *testing.T) {
	s := server(t, 9, func(w http.ResponseWriter, _ *http.Request) {
		conn, buffer, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = buffer.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\nhello")
		_ = buffer.Flush()
	})
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(answer), "\r\n\r\nhello"), string(answer))
}

func TestInformationalAndOwnHeaders(t *testing.T) {
	s := server(t, 9, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("RateLimit", `"mine";r=1`)
		w.WriteHeader(http.StatusCreated)
	})
	hints := 0
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { hints++; return nil },
	}), http.MethodGet, s.URL, nil)
	require.NoError(t, err)
	response, err := s.Client().Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusCreated, response.StatusCode)
	require.Equal(t, 1, hints)
	require.Equal(t, []string{`"mine";r=1`}, response.Header.Values("RateLimit"), "the handler's own word stands")
}

func TestRefusalsOnTheWire(t *testing.T) {
	s := server(t, 1, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "fine") })
	for i, method := range []string{"GET", "HEAD", "GET", "POST"} {
		request, err := http.NewRequestWithContext(t.Context(), method, s.URL, nil)
		require.NoError(t, err)
		response, err := s.Client().Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		if i == 0 {
			require.Equal(t, http.StatusOK, response.StatusCode)
			continue
		}
		require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
		require.Equal(t, "application/problem+json", response.Header.Get("Content-Type"))
		if method == "HEAD" {
			require.Empty(t, body)
		} else {
			requireSane(t, response.Header, body, 600)
		}
	}
}
