package upstashtest

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// faults are what a Server was told to do wrong.
type faults struct {
	down  bool
	delay time.Duration
	cuts  int
	slots map[string]string
	fixed *Answer
}

// Answer is an HTTP answer that stands in for the true one.
type Answer struct {
	Status      int
	ContentType string
	Body        string
}

// SetDown closes the port and all connections, or opens the same port again. It
// panics if somebody else took the port meanwhile.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	s.down = down
	s.mu.Unlock()
	if s.web == nil {
		return
	}
	if down {
		s.web.stop()
	} else if err := s.web.start(); err != nil {
		panic(err)
	}
}

// SetDelay holds every answer back for d; the commands are executed at once.
func (s *Server) SetDelay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// CutAfterApply executes the commands of the next n requests and then drops the
// connection instead of answering.
func (s *Server) CutAfterApply(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cuts = n
}

// SetSlotError refuses the command of this name, or with "*" every command, with
// text; an empty text ends it. In a pipeline the refusal stands in the command's slot
// of a 200.
func (s *Server) SetSlotError(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots == nil {
		s.slots = map[string]string{}
	}
	if text == "" {
		delete(s.slots, strings.ToUpper(name))
		return
	}
	s.slots[strings.ToUpper(name)] = text
}

// SetAnswer gives the same answer to every request, after executing its commands; nil
// ends it.
func (s *Server) SetAnswer(a *Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fixed = a
}

func (s *Server) slotError(name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.slots[name]
	if !ok {
		text, ok = s.slots["*"]
	}
	return text, ok
}

// spoil does to an answer what the faults say, and tells whether it is done with.
func (s *Server) spoil(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	delay, fixed, cut := s.delay, s.fixed, s.cuts > 0
	if cut {
		s.cuts--
	}
	s.mu.Unlock()
	if delay > 0 {
		wait := time.NewTimer(delay)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-r.Context().Done():
			return true
		}
	}
	if cut {
		panic(http.ErrAbortHandler)
	}
	if fixed != nil {
		w.Header().Set("Content-Type", fixed.ContentType)
		w.WriteHeader(fixed.Status)
		_, _ = io.WriteString(w, fixed.Body)
		return true
	}
	return false
}
