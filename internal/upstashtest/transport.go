package upstashtest

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
)

// Transport reaches the double in this process, without a socket: the way in for
// clients inside a testing/synctest bubble. A double that is down refuses the
// connection, and a cut answer ends in io.ErrUnexpectedEOF.
func (s *Server) Transport() http.RoundTripper { return inProcess{s} }

type inProcess struct{ s *Server }

func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, errors.Join(err, r.Body.Close())
	}
	t.s.mu.Lock()
	down := t.s.down
	t.s.mu.Unlock()
	if down {
		return nil, errors.Join(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, r.Body.Close())
	}
	done := make(chan *http.Response, 1)
	go func() {
		rec := httptest.NewRecorder()
		defer close(done)
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				panic(p)
			}
		}()
		t.s.ServeHTTP(rec, r)
		_ = r.Body.Close()
		done <- rec.Result()
	}()
	select {
	case resp, answered := <-done:
		if !answered {
			return nil, io.ErrUnexpectedEOF
		}
		return resp, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}
