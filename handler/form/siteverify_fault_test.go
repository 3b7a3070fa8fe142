package form

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// A service that hangs, drips, cuts or sends elsewhere is one that could not be asked, in
// time, and is asked once.
func TestSiteverifyFaults(t *testing.T) {
	var stolen atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen.Add(1)
		say(200, `{"success":true}`)(w, r)
	}))
	defer thief.Close()
	wire := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, text)
				_ = conn.Close()
			}
		}
	}
	redirect := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL, status) }
	}
	tests := []struct {
		name string
		do   http.HandlerFunc
	}{
		{"cut at once", wire("")},
		{"no HTTP", wire("\x16\x03\x01\x02")},
		{"cut in the header", wire("HTTP/1.1 200 OK\r\nContent-Le")},
		{"cut in the body", wire("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"success\":true}")},
		{"cut in a chunk", wire("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{\"success\":true}\r\n")},
		{"a header without end", wire("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n{\"success\":true}")},
		{"301", redirect(301)}, {"302", redirect(302)}, {"303", redirect(303)}, {"307", redirect(307)}, {"308", redirect(308)},
		{"a body without end", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"success":true}`)
			for b := []byte(strings.Repeat(" ", 4096)); ; {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		}},
	}
	for _, x := range services {
		for _, test := range tests {
			t.Run(x.name+"/"+test.name, func(t *testing.T) {
				var asked atomic.Int64
				c := x.over(t, func(w http.ResponseWriter, r *http.Request) {
					asked.Add(1)
					test.do(w, r)
				})
				err := c.Verify(t.Context(), "my-token", netip.Addr{})
				require.ErrorIs(t, err, stores.ErrUnavailable)
				require.NotErrorIs(t, err, ErrBot)
				require.NotContains(t, err.Error(), "in time", "it is found out before that")
				require.EqualValues(t, 1, asked.Load())
				for _, text := range []string{captchaSecret, "my-token", "127.0.0.1"} {
					require.NotContains(t, err.Error(), text)
				}
			})
		}
	}
	require.Zero(t, stolen.Load(), "no secret is sent where a redirect points")
	for _, x := range services {
		c, err := x.new(captchaSecret, at("http://127.0.0.1:1/"))
		require.NoError(t, err)
		require.ErrorIs(t, c.Verify(t.Context(), "x", netip.Addr{}), stores.ErrUnavailable)
	}
}

// Silence, before the answer or within it, ends after 3 seconds; or when the caller says.
func TestSiteverifySilence(t *testing.T) {
	for _, silent := range []string{"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"succ"} {
		synctest.Test(t, func(t *testing.T) {
			c, err := Turnstile(captchaSecret, at("http://service.example/"))
			require.NoError(t, err)
			// A connection within the bubble, so that its clock is the test's.
			c.(*siteverify).transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go func() {
					buffer := make([]byte, 4096)
					_, _ = far.Read(buffer)
					_, _ = io.WriteString(far, silent)
					_, _ = io.Copy(io.Discard, far) // until the other side closes
				}()
				return near, nil
			}}
			begin := time.Now()
			err = c.Verify(t.Context(), "x", netip.Addr{})
			require.ErrorIs(t, err, stores.ErrUnavailable)
			require.ErrorContains(t, err, "in time")
			require.Equal(t, captchaTime, time.Since(begin))

			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begin = time.Now()
			require.ErrorIs(t, c.Verify(ctx, "x", netip.Addr{}), stores.ErrUnavailable)
			require.Equal(t, time.Second, time.Since(begin))
		})
	}
}

// A whole form over a service that is down: closed, unless a guard decides.
func TestFormOverDeadService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := Turnstile(captchaSecret)
		require.NoError(t, err)
		c.(*siteverify).transport = roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("secret=" + captchaSecret) })
		s := newSite(t, Config{Captcha: c})
		values := s.filled(t, "cf-turnstile-response", "x")
		time.Sleep(3 * time.Second)
		require.Equal(t, 503, s.serve(request(values)).Code)
		require.Zero(t, s.next.count())
		require.Contains(t, s.log.String(), "the connection failed")
		require.NotContains(t, s.log.String(), captchaSecret)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
