package dynamotest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

func credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: AccessKeyID, SecretAccessKey: SecretAccessKey, SessionToken: SessionToken}, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Transport reaches the server without a network, in the caller's goroutine. It
// reports connections to an httptrace as net/http does, and fails with the errors
// that sockets fail with.
func (s *Server) Transport() http.RoundTripper { return roundTripper(s.roundTrip) }

func (s *Server) roundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.GetConn != nil {
		trace.GetConn(r.URL.Host)
	}
	switch s.dialState() {
	case refused:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case blackholed:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	reply, err := s.answer(ctx, r.Header, body)
	if err == errCut {
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	if err != nil {
		return nil, err
	}
	return response(r, reply), nil
}

// engineOnly is a round trip past faults and counts.
func (s *Server) engineOnly(r *http.Request) (*http.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	return response(r, s.apply(r.Header, body)), nil
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

func response(r *http.Request, reply Reply) *http.Response {
	resp := &http.Response{
		StatusCode: reply.Status, Status: http.StatusText(reply.Status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: reply.Header, ContentLength: int64(len(reply.Body)), Request: r,
	}
	if !reply.Cut && !reply.Stall {
		resp.Body = io.NopCloser(bytes.NewReader(reply.Body))
		return resp
	}
	half := bytes.NewReader(reply.Body[:len(reply.Body)/2])
	rest := readFunc(func([]byte) (int, error) {
		if reply.Stall {
			<-r.Context().Done()
			return 0, r.Context().Err()
		}
		return 0, io.ErrUnexpectedEOF
	})
	resp.Body = io.NopCloser(io.MultiReader(half, rest))
	return resp
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// answer counts the call and carries it out, or lets it meet its fault.
func (s *Server) answer(ctx context.Context, header http.Header, body []byte) (Reply, error) {
	apply := func() Reply { return s.apply(header, body) }
	do := s.next(target(header), keyOf(body))
	if do == nil {
		return apply(), nil
	}
	reply, err := do(ctx, apply)
	if err == nil && len(reply.Header.Values("Date")) == 0 {
		reply.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	return reply, err
}

// apply asks the engine.
func (s *Server) apply(header http.Header, body []byte) Reply {
	r := httptest.NewRequest(http.MethodPost, "http://dynamodb.test/", bytes.NewReader(body))
	r.Header = header
	w := httptest.NewRecorder()
	s.engine.ServeHTTP(w, r)
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	return Reply{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}
}

// target returns the API action of a request.
func target(header http.Header) string {
	_, action, _ := strings.Cut(header.Get("X-Amz-Target"), ".")
	return action
}

// keyOf returns the key of the item that a request names, "" if it names none.
func keyOf(body []byte) string {
	var request struct {
		Key map[string]struct{ S string }
	}
	if json.Unmarshal(body, &request) != nil {
		return ""
	}
	return request.Key[KeyAttribute].S
}
