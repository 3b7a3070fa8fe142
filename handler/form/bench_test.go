package form

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func BenchmarkFields(b *testing.B) {
	s := newSite(b, Config{})
	b.ReportAllocs()
	for b.Loop() {
		s.Fields()
	}
}

// BenchmarkPost is a whole post over memory; "bare" is what of it is the test's own.
func BenchmarkPost(b *testing.B) {
	tests := []struct {
		name string
		wrap func(b *testing.B, next http.Handler) (http.Handler, string)
	}{
		{"bare", func(_ *testing.B, next http.Handler) (http.Handler, string) { return next, "name=Ada" }},
		{"program", func(b *testing.B, next http.Handler) (http.Handler, string) {
			s := newSite(b, Config{Decoy: next})
			return s.Handler(next), s.filled(b, s.keys[0].honeypot, "x").Encode()
		}},
		{"person", func(b *testing.B, next http.Handler) (http.Handler, string) {
			s := newSite(b, Config{MinFill: -1, Uses: 1 << 30})
			return s.Handler(next), s.filled(b).Encode()
		}},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			h, body := test.wrap(b, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("POST", "/contact", strings.NewReader(body))
				r.Header.Set("Content-Type", typeURLEncoded)
				h.ServeHTTP(w, r)
			}
		})
	}
}
