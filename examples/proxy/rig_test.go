package main

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

const patience = 30 * time.Second

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

// scene is a proxy before a service, both on loopback.
type scene struct {
	addr    string // of the proxy
	log     *buffer
	service *httptest.Server
	proxy   *proxy
}

const byAddress = `[{"name": "all", "limit": "5/10m", "key": "ip"}]`

func open(t *testing.T, policies string, service http.HandlerFunc, change ...func(*config)) *scene {
	t.Helper()
	s := &scene{log: &buffer{}, service: httptest.NewServer(service)}
	t.Cleanup(s.service.Close)
	c := config{clientIP: handler.Direct(), store: inMemory(t), logger: slog.New(slog.NewTextHandler(s.log, nil))}
	var err error
	c.upstream, err = parseUpstream(s.service.URL)
	require.NoError(t, err)
	c.policies, err = readPolicies(policies)
	require.NoError(t, err)
	for _, f := range change {
		f(&c)
	}
	s.proxy, err = newProxy(c)
	require.NoError(t, err)
	front := httptest.NewServer(s.proxy)
	t.Cleanup(front.Close)
	s.addr = front.Listener.Addr().String()
	return s
}

func inMemory(t *testing.T) stores.Store {
	m, err := memory.New(memory.Config{})
	require.NoError(t, err)
	return m
}

// raw sends bytes from one of loopback's addresses and returns the connection.
func (s *scene) raw(t *testing.T, from string, lines ...string) (net.Conn, *bufio.Reader) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	conn, err := dialer.Dial("tcp", s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, strings.Join(lines, "\r\n"))
	require.NoError(t, err)
	return conn, bufio.NewReader(conn)
}

// ask sends a request and returns the answer with its whole body. Each header is
// "Name: value", and goes out as it is written.
func (s *scene) ask(t *testing.T, from, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: shop.example"}, header...)
	if body != "" {
		lines = append(lines, "Content-Length: "+strconv.Itoa(len(body)))
	}
	conn, r := s.raw(t, from, append(lines, "Connection: close", "", body)...)
	defer func() { _ = conn.Close() }()
	request, err := http.NewRequest(method, "/", nil)
	require.NoError(t, err)
	resp, err := http.ReadResponse(r, request)
	require.NoError(t, err)
	read, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(read)
}
