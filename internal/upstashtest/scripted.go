package upstashtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Scripted is a server on a bare TCP port that reads requests properly and answers
// them as its script says. Behind it stands a counter that knows INCR, PEXPIRE, PTTL,
// GET and DEL, and of scripts the one of package upstash, whose keys never expire, so
// that a fault may strike before or after the work is done.
type Scripted struct {
	URL   string
	Token string

	ln      net.Listener
	stopped chan struct{}
	wg      sync.WaitGroup

	mu       sync.Mutex
	script   []Fault
	requests []Request
	applied  [][]string
	counters map[string]int64
	expiry   map[string]int64
	conns    int
}

// Request is one request that came in whole.
type Request struct {
	Method   string
	Path     string
	Header   http.Header
	Body     string
	Commands [][]string // of a readable body
	Conn     int        // which connection it came on, from 1
	OnConn   int        // its number on that connection, from 1
}

// Fault is the answer to one request. It returns whether the connection may go on.
type Fault func(x *Exchange) (keep bool)

// Exchange is what a Fault has to work with.
type Exchange struct {
	Request
	Wire net.Conn

	server *Scripted
}

// NewScripted starts a server that answers its first request by the first fault, the
// next by the second, and so on; the last one is repeated. It ends with the test.
func NewScripted(t testing.TB, script ...Fault) *Scripted {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Scripted{
		URL: "http://" + ln.Addr().String(), Token: DefaultToken,
		ln: ln, stopped: make(chan struct{}), script: script,
		counters: map[string]int64{}, expiry: map[string]int64{},
	}
	s.wg.Go(s.accept)
	t.Cleanup(func() {
		close(s.stopped)
		_ = ln.Close()
		s.wg.Wait()
	})
	return s
}

// Script replaces what is left of the script.
func (s *Scripted) Script(script ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// Requests returns all requests that came in whole.
func (s *Scripted) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Came tells how often a command of this name came; "" counts all.
func (s *Scripted) Came(name string) (n int) {
	for _, r := range s.Requests() {
		n += countCommands(r.Commands, name)
	}
	return n
}

// Applied tells how often a command of this name was executed; "" counts all.
func (s *Scripted) Applied(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return countCommands(s.applied, name)
}

// Conns tells how many connections were opened.
func (s *Scripted) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

func (s *Scripted) accept() {
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns++
		number := s.conns
		s.mu.Unlock()
		s.wg.Go(func() { s.serve(conn, number) })
	}
}

func (s *Scripted) serve(conn net.Conn, number int) {
	ended := make(chan struct{})
	defer close(ended)
	s.wg.Go(func() {
		select {
		case <-s.stopped:
		case <-ended:
		}
		_ = conn.Close()
	})
	rd := bufio.NewReader(conn)
	for n := 1; ; n++ {
		r, err := http.ReadRequest(rd)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		x := &Exchange{Wire: conn, server: s, Request: Request{
			Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header, Body: string(body), Conn: number, OnConn: n,
		}}
		x.Commands, _ = parseCommands(body)
		if !s.next(x)(x) {
			return
		}
	}
}

func (s *Scripted) next(x *Exchange) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, x.Request)
	if len(s.script) == 0 {
		return Good()
	}
	f := s.script[0]
	if len(s.script) > 1 {
		s.script = s.script[1:]
	}
	return f
}

// Apply executes the request's commands and returns the body that tells of it.
func (x *Exchange) Apply() string {
	s := x.server
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := make([]string, len(x.Commands))
	for i, c := range x.Commands {
		s.applied = append(s.applied, c)
		slots[i] = `{"result":` + s.execute(c) + `}`
	}
	return "[" + strings.Join(slots, ",") + "]"
}

// execute is called with mu held.
func (s *Scripted) execute(c []string) string {
	key := c[1]
	n, there := s.counters[key]
	ttl, expires := s.expiry[key]
	switch strings.ToUpper(c[0]) {
	case "INCR":
		s.counters[key] = n + 1
		return strconv.FormatInt(n+1, 10)
	case "PEXPIRE":
		if !there || expires && len(c) > 3 {
			return "0"
		}
		s.expiry[key], _ = strconv.ParseInt(c[2], 10, 64)
		return "1"
	case "PTTL":
		switch {
		case !there:
			return "-2"
		case !expires:
			return "-1"
		}
		return strconv.FormatInt(ttl, 10)
	case "GET":
		if !there {
			return "null"
		}
		return fmt.Sprintf("%q", strconv.FormatInt(n, 10))
	case "DEL":
		delete(s.counters, key)
		delete(s.expiry, key)
		return "1"
	case "EVALSHA", "EVAL":
		return s.evaluate(c)
	}
	return "null"
}
