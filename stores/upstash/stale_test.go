package upstash_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

// A connection that had served and is found dead tells nothing of the store; one that
// is cut at its first request does.
func TestStaleConnection(t *testing.T) {
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			_, _ = w.Write([]byte(`[{"result":1},{"result":1},{"result":60000}]`))
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the cut meets the request on its way
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}))
	defer server.Close()
	s, err := upstash.New(upstash.Config{URL: server.URL, Token: "token"})
	require.NoError(t, err)
	hit := stores.Hit{Key: "k", Limit: stores.FixedWindow(5, time.Minute)}
	_, err = s.Take(t.Context(), hit)
	require.NoError(t, err)
	for _, stale := range []bool{true, false, false} {
		_, err = s.Take(t.Context(), hit)
		var f *fault.Error
		require.True(t, errors.As(err, &f))
		require.ErrorIs(t, err, stores.ErrUnavailable)
		require.Equal(t, stale, f.Stale)
		require.False(t, f.Definite)
	}
}
