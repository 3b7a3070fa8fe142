package handler

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// leanWriter is a ResponseWriter that costs next to nothing, so that a benchmark
// shows what the guard costs.
type leanWriter struct {
	header http.Header
	status int
	bytes  int
}

func (w *leanWriter) Header() http.Header         { return w.header }
func (w *leanWriter) WriteHeader(status int)      { w.status = status }
func (w *leanWriter) Write(b []byte) (int, error) { w.bytes += len(b); return len(b), nil }

func benchHandler(b testing.TB, quota int) http.Handler {
	store, err := memory.New(memory.Config{})
	require.NoError(b, err)
	g, err := New(Config{Store: store, ClientIP: Direct(), Policies: []Policy{{
		Name: "contact-form", Limit: stores.FixedWindow(quota, time.Hour), Key: ByIP(),
	}}})
	require.NoError(b, err)
	return g.Handler(bare)
}

var bare = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })

func benchRequest() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/contact", nil)
	r.RemoteAddr = "203.0.113.9:4711"
	r.Header.Set("Accept", "*/*")
	return r
}

func serveLean(h http.Handler, w *leanWriter, r *http.Request) {
	clear(w.header)
	h.ServeHTTP(w, r)
}

func BenchmarkHandler(b *testing.B) {
	for _, bench := range []struct {
		name    string
		handler http.Handler
	}{
		{"bare", bare},
		{"allow", benchHandler(b, 1<<40)},
		{"refuse", benchHandler(b, 1)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			w, r := &leanWriter{header: http.Header{}}, benchRequest()
			serveLean(bench.handler, w, r)
			b.ReportAllocs()
			for b.Loop() {
				serveLean(bench.handler, w, r)
			}
		})
	}
}

func TestAllocations(t *testing.T) {
	for name, quota := range map[string]int{"allow": 1 << 40, "refuse": 1} {
		h, w, r := benchHandler(t, quota), &leanWriter{header: http.Header{}}, benchRequest()
		serveLean(h, w, r)
		got := testing.AllocsPerRun(200, func() { serveLean(h, w, r) })
		if !raceDetector {
			require.LessOrEqual(t, got, 3.0, name)
		}
	}
}
