package dynamo

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
)

// A connection that had served and is found dead tells nothing of the table; one that
// is cut at its first request does.
func TestStaleConnection(t *testing.T) {
	engine := dynamotest.New(t)
	var requests, connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			engine.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the cut meets the request on its way
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	s := newStore(t, dynamotest.NewClient(server.URL, http.DefaultTransport.(*http.Transport).Clone()))
	h := hit("k", 5, time.Minute)
	_, err := s.Take(t.Context(), h)
	require.NoError(t, err)
	for range 3 {
		before := connections.Load()
		_, err = s.Take(t.Context(), h)
		f := asFault(t, err)
		require.Equal(t, connections.Load() == before, f.Stale, "%v", err)
		require.False(t, f.Definite)
	}
	require.Equal(t, int64(4), requests.Load())
}
