package lambda_test

import (
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/lambda"
)

// answers are handlers whose answers HTTP and a server of net/http must give alike.
var answers = map[string]http.HandlerFunc{
	"nothing":      func(http.ResponseWriter, *http.Request) {},
	"text":         func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "héllo") },
	"html":         func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<!doctype html><p>a&b") },
	"binary":       func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("\x89PNG\r\n\x1a\n\x00\xff")) },
	"late bytes":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(nil); _, _ = io.WriteString(w, "<html>") },
	"status":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
	"status twice": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); w.WriteHeader(202) },
	"early hints":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(202) },
	"no content": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(204)
		_, err := io.WriteString(w, "x")
		if err == nil {
			panic("a body with 204")
		}
	},
	"not modified": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Etag", `"1"`); w.WriteHeader(304) },
	"late header":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); w.Header().Set("X-Late", "1") },
	"flush": func(w http.ResponseWriter, _ *http.Request) {
		if http.NewResponseController(w).Flush() != nil {
			panic("no flusher")
		}
		w.WriteHeader(500)
		_, _ = io.WriteString(w, "x")
	},
	"own type": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css")
		_, _ = io.WriteString(w, "<html>")
	},
	"no type": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "<html>")
	},
	"own length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "3")
		_, _ = io.WriteString(w, "abc")
	},
	"encoded": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "plain, but said to be gzip")
	},
	"redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusSeeOther) },
	"error":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) },
	"many lines": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Vary", "Origin")
		w.Header().Add("Vary", "Accept")
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT")
		w.Header().Add("Set-Cookie", "c=3")
	},
	"line break": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Odd", "a\r\nX-Forged: 1") },
	"odd name":   func(w http.ResponseWriter, _ *http.Request) { w.Header()["X Odd"] = []string{"1"} },
	"trailer": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(200)
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
	},
	"echo": func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) },
}

// The oracle is a server of net/http itself.
func TestAnswersAreThoseOfAServer(t *testing.T) {
	for name, h := range answers {
		for _, method := range []string{"GET", "HEAD"} {
			server := httptest.NewUnstartedServer(h)
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			server.Start()
			req, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
			require.NoError(t, err)
			req.Header.Set("Accept-Encoding", "identity")
			want, err := http.DefaultTransport.RoundTrip(req)
			require.NoError(t, err)
			wantBody, err := io.ReadAll(want.Body)
			require.NoError(t, err)
			require.NoError(t, want.Body.Close())
			server.Close()

			for _, e := range entries() {
				ev := awsEvent(t, e.file)
				if e.name == "http api" || e.name == "function url" {
					put(ev, "requestContext.http.method", method)
				} else {
					put(ev, "httpMethod", method)
				}
				put(ev, "body", "")
				answer := invoke(t, lambda.HTTP(h), ev)
				at := name + " " + method + " " + e.name
				require.Equal(t, want.StatusCode, status(answer), at)
				body, _ := answer["body"].(string)
				if answer["isBase64Encoded"] == true {
					b, err := base64.StdEncoding.DecodeString(body)
					require.NoError(t, err, at)
					body = string(b)
				}
				require.Equal(t, string(wantBody), body, at)
				for field, lines := range want.Header {
					switch field {
					case "Date", "Content-Length", "Connection":
						continue // the gateway's to write
					}
					got := e.header(answer, field)
					if field == "Set-Cookie" || e.multi || (e.name == "rest api" && len(lines) > 1) {
						require.ElementsMatch(t, lines, got, "%s %s", at, field)
					} else {
						require.Equal(t, []string{strings.Join(lines, ", ")}, got, "%s %s", at, field)
					}
				}
				for _, absent := range []string{"X-Late", "X Odd", "X-Forged", "Connection", "Trailer", http.TrailerPrefix + "X-Sum"} {
					require.Empty(t, e.header(answer, absent), at)
				}
				// A server that flushed before the first byte had no chance to look at it.
				if want.Header.Get("Content-Type") == "" && name != "flush" {
					require.Empty(t, e.header(answer, "Content-Type"), at)
				}
				if method == "GET" {
					require.Empty(t, e.header(answer, "Content-Length"), at)
				}
			}
		}
	}
}

func TestTextAndBinary(t *testing.T) {
	for _, c := range []struct {
		name, encoding, body string
		isBase64             bool
	}{
		{"empty", "", "", false},
		{"ascii", "", "abc", false},
		{"utf-8", "", "äöü \u2028 \x00", false},
		{"identity", "identity", "abc", false},
		{"latin-1", "", "\xe4", true},
		{"zip", "", "PK\x03\x04\xff", true},
		{"gzip", "gzip", "abc", true},
		{"cut in a rune", "", "ä"[:1], true},
	} {
		for _, e := range entries() {
			answer := invoke(t, lambda.HTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.encoding != "" {
					w.Header().Set("Content-Encoding", c.encoding)
				}
				_, _ = io.WriteString(w, c.body)
			})), awsEvent(t, e.file))
			require.Equal(t, c.isBase64, answer["isBase64Encoded"] == true, c.name)
			body, _ := answer["body"].(string)
			if c.isBase64 {
				b, err := base64.StdEncoding.DecodeString(body)
				require.NoError(t, err)
				body = string(b)
			}
			require.Equal(t, c.body, body, c.name)
		}
	}
}

// Handlers that write a name past http.Header's methods lose no line.
func TestSpellingsOfOneName(t *testing.T) {
	h := lambda.HTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "a=1")
		w.Header()["set-cookie"] = []string{"b=2"}
		w.Header()["SET-COOKIE"] = []string{"c=3"}
		w.Header()["content-type"] = []string{"text/css"}
		_, _ = io.WriteString(w, "<html>")
	}))
	for range 10 { // a map has another order each time
		for _, e := range entries() {
			answer := invoke(t, h, awsEvent(t, e.file))
			require.ElementsMatch(t, []string{"a=1", "b=2", "c=3"}, e.header(answer, "Set-Cookie"), e.name)
			require.Equal(t, "text/css", e.one(t, answer, "Content-Type"), e.name)
		}
	}
}

// Several cookies in a map of single values: each has a spelling of its own.
func TestCookiesOfASingleValueLoadBalancer(t *testing.T) {
	e := entries()[3]
	var want []string
	h := lambda.HTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, c := range want {
			w.Header().Add("Set-Cookie", c)
		}
	}))
	for i := range 100 {
		want = append(want, strings.Repeat("c", i+1)+"=1; Path=/, x")
	}
	answer := invoke(t, h, awsEvent(t, e.file))
	require.ElementsMatch(t, want, e.header(answer, "Set-Cookie"))
	require.Equal(t, "200 OK", answer["statusDescription"])
}

// Status codes that a gateway would make 502 of.
func TestOddStatus(t *testing.T) {
	for code, want := range map[int]int{99: 500, 0: 500, -1: 500, 600: 500, 999: 500, 599: 599, 499: 503, 200: 200, 418: 418} {
		for _, e := range entries() {
			answer := invoke(t, lambda.HTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })), awsEvent(t, e.file))
			require.Equal(t, want, status(answer), code)
			if description, ok := answer["statusDescription"].(string); ok {
				require.Regexp(t, `^[1-5][0-9][0-9] \S.*$`, description)
			}
		}
	}
}

// A handler that gives its answer up, as a reverse proxy does when the server behind
// it dies, does not cost the process with all that it has counted.
func TestAbortedAnswer(t *testing.T) {
	h := lambda.HTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half of")
		panic(http.ErrAbortHandler)
	}))
	b, err := h.Invoke(t.Context(), encode(t, awsEvent(t, "lambda-urls-request.json")))
	require.ErrorContains(t, err, "aborted")
	require.Nil(t, b)
}

// The text of a page is not written in escapes.
func TestNoEscapesForHTML(t *testing.T) {
	h := lambda.HTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<p>a&b") }))
	b, err := h.Invoke(t.Context(), encode(t, awsEvent(t, "lambda-urls-request.json")))
	require.NoError(t, err)
	require.Contains(t, string(b), `"body":"<p>a&b"`)
	require.NotContains(t, string(b), "\n")
}
