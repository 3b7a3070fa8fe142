package dynamotest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Listen serves on loopback until the test ends and returns the URL.
func (s *Server) Listen(t testing.TB) string {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

// Network returns a client that reaches the server over loopback. Its transport
// keeps to SetDown and SetBlackhole when it dials; connections that are open stay
// so.
func (s *Server) Network(t testing.TB, optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	transport := &http.Transport{DialContext: s.dialContext, MaxIdleConnsPerHost: 64, IdleConnTimeout: 5 * time.Second}
	t.Cleanup(transport.CloseIdleConnections)
	return NewClient(s.Listen(t), transport, optFns...)
}

func (s *Server) dialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	switch s.dialState() {
	case refused:
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	case blackholed:
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// ServeHTTP answers as the fault of the moment wants it. Where a fault cuts, the
// connection is reset.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	reply, err := s.answer(r.Context(), r.Header, body)
	if err != nil {
		reset(w)
		return
	}
	for name, values := range reply.Header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(reply.Body)))
	w.WriteHeader(reply.Status)
	if !reply.Cut && !reply.Stall {
		_, _ = w.Write(reply.Body)
		return
	}
	_, _ = w.Write(reply.Body[:len(reply.Body)/2])
	_ = http.NewResponseController(w).Flush()
	if reply.Stall {
		<-r.Context().Done()
	}
	reset(w)
}

// reset closes the connection so that the peer sees an RST rather than an end.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
