package upstash_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

// lean is a server that always says the same, so that what is measured is ours and
// net/http's.
func lean(b *testing.B, answer string) string {
	b.Helper()
	body := []byte(answer)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(body)
	}))
	b.Cleanup(srv.Close)
	return srv.URL
}

// BenchmarkBare is the least that net/http does for the same exchange: the baseline.
func BenchmarkBare(b *testing.B) {
	url := lean(b, `[{"result":2},{"result":0},{"result":60000}]`)
	body := []byte(`[["INCR","k"],["PEXPIRE","k","60000","NX"],["PTTL","k"]]`)
	tr := upstash.NewTransport(time.Second)
	b.ReportAllocs()
	for b.Loop() {
		req, _ := http.NewRequest("POST", url, bytes.NewReader(body))
		resp, err := tr.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// BenchmarkTake is a decision over loopback, on a window whose end is to be asked.
func BenchmarkTake(b *testing.B) {
	s := open(b, lean(b, `[{"result":2},{"result":1},{"result":60000}]`)) // teaches no end
	hit := stores.Hit{Key: "k", Limit: stores.FixedWindow(5, time.Minute)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Take(b.Context(), hit); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTakeInProcess leaves the network out: what the store itself costs.
func BenchmarkTakeInProcess(b *testing.B) {
	answer := []byte(`[{"result":2},{"result":1},{"result":60000}]`)
	s := open(b, "https://example.upstash.io", func(c *upstash.Config) {
		c.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, r.Body)
			return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(answer))}, nil
		})
	})
	hit := stores.Hit{Key: "k", Limit: stores.FixedWindow(5, time.Minute)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Take(b.Context(), hit); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTakeMiniredis is a decision with the double's own work in it, warm.
func BenchmarkTakeMiniredis(b *testing.B) {
	srv := upstashtest.New(b)
	s := open(b, srv.URL)
	hit := stores.Hit{Key: "k", Limit: stores.FixedWindow(5, time.Hour)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Take(b.Context(), hit); err != nil {
			b.Fatal(err)
		}
	}
}
