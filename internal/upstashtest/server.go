package upstashtest

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Server is a double of one Upstash database. All methods are safe for concurrent
// use.
type Server struct {
	URL   string // of the REST endpoint
	Token string // the only one that is let in

	redis   *redis
	flagged flagged
	mini    *miniredis.Miniredis // nil over a real redis-server
	web     *listener            // nil in a bubble

	mu       sync.Mutex
	requests int
	commands [][]string
	before   int // commands that the embedded Redis had executed at the last Forget
	faults
}

// New starts a double on a loopback port over an embedded Redis, whose time stands
// still but for [Server.FastForward]. It ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// NewReal is New over a redis-server of its own: see [RealRedis].
func NewReal(t testing.TB) *Server {
	t.Helper()
	s, err := OpenRedis(RealRedis(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// NewBubble is a double for a testing/synctest bubble: no sockets, and keys expire by
// the bubble's clock. Clients reach it by [Server.Transport] only. Call it inside the
// bubble.
func NewBubble(t testing.TB) *Server {
	t.Helper()
	s := embedded()
	s.URL = "http://localhost"
	s.mini.ClockTTL(true)
	t.Cleanup(s.Close)
	return s
}

// DefaultToken is the token of every double that is not given another one.
const DefaultToken = "AX-double-7f3b0c55e1d24d6a9b8e"

func embedded() *Server {
	m := miniredis.NewMiniRedis()
	return &Server{Token: DefaultToken, mini: m, redis: newRedis(m.Dial)}
}

// Open is New for examples; the caller closes it.
func Open() (*Server, error) { return embedded().listen("127.0.0.1:0") }

// OpenRedis serves the Redis at addr (host:port); the caller closes it.
func OpenRedis(addr string) (*Server, error) {
	return overRedis(addr).listen("127.0.0.1:0")
}

// Serve is for programs: it listens on an address and serves the Redis at another one,
// or, if that is empty, an embedded one whose keys expire by the wall clock.
func Serve(addr, redis, token string) (*Server, error) {
	s := embedded()
	if redis != "" {
		s = overRedis(redis)
	} else {
		s.mini.ClockTTL(true)
	}
	s.Token = token
	return s.listen(addr)
}

func overRedis(addr string) *Server {
	return &Server{Token: DefaultToken, redis: newRedis(dialTCP(addr))}
}

func (s *Server) listen(addr string) (*Server, error) {
	web, err := listen(addr, s)
	if err != nil {
		return nil, err
	}
	s.web, s.URL = web, "http://"+web.addr
	return s, nil
}

// Close ends the double and its connections.
func (s *Server) Close() {
	if s.web != nil {
		s.web.stop()
	}
	s.redis.close()
	if s.mini != nil {
		s.mini.Close()
	}
}

// FastForward lets d pass for the embedded Redis's keys.
func (s *Server) FastForward(d time.Duration) { s.mini.FastForward(d) }

// Mini is the embedded Redis, nil over a real one.
func (s *Server) Mini() *miniredis.Miniredis { return s.mini }

// Do runs one command on the database itself, unrecorded: to prepare it, or to look.
// It returns an int64, a string, nil, a []any, or an error for what Redis refuses.
func (s *Server) Do(args ...any) (any, error) {
	command := make([]string, len(args))
	for i, a := range args {
		command[i] = fmt.Sprint(a)
	}
	replies, err := s.redis.do(command)
	if err != nil {
		return nil, err
	}
	if f, failed := replies[0].(failure); failed {
		return nil, fmt.Errorf("redis: %s", string(f))
	}
	return encoding(false).value(replies[0]), nil
}

func (s *Server) count() {
	s.mu.Lock()
	s.requests++
	s.mu.Unlock()
}

func (s *Server) record(commands [][]string) {
	s.mu.Lock()
	s.commands = append(s.commands, commands...)
	s.mu.Unlock()
}

// Requests tells how many HTTP requests came, whatever became of them.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Commands returns every command that came, refused ones too, in order.
func (s *Server) Commands() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]string(nil), s.commands...)
}

// Count tells how often the command of this name came; "" counts all.
func (s *Server) Count(name string) int { return countCommands(s.Commands(), name) }

func countCommands(commands [][]string, name string) (n int) {
	for _, c := range commands {
		if name == "" || strings.EqualFold(c[0], name) {
			n++
		}
	}
	return n
}

// Billed tells how many commands the embedded Redis executed since the last Forget, or
// ever: as Upstash bills, those that scripts call included. (Those of Do are too.)
func (s *Server) Billed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.executed() - s.before
}

func (s *Server) executed() int {
	if s.mini == nil || !s.redis.asked.Load() {
		return 0
	}
	return s.mini.CommandCount()
}

// Forget empties the record.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.commands, s.before = 0, nil, s.executed()
}

// listener is an HTTP server that can go away and come back on the same port.
type listener struct {
	addr    string
	handler http.Handler

	mu  sync.Mutex
	srv *http.Server
}

func listen(addr string, h http.Handler) (*listener, error) {
	l := &listener{handler: h}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	l.addr = ln.Addr().String()
	l.serve(ln)
	return l, nil
}

func (l *listener) serve(ln net.Listener) {
	srv := &http.Server{Handler: l.handler, ReadHeaderTimeout: time.Minute}
	l.srv = srv
	go func() { _ = srv.Serve(ln) }() // stop may take l.srv away before this begins
}

func (l *listener) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.srv != nil {
		_ = l.srv.Close()
		l.srv = nil
	}
}

func (l *listener) start() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.srv != nil {
		return nil
	}
	ln, err := net.Listen("tcp", l.addr)
	if err == nil {
		l.serve(ln)
	}
	return err
}
