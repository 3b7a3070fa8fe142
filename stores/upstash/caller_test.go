package upstash_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

// TestRedirectsAreNotFollowed: the token goes nowhere else.
func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		elsewhere := upstashtest.NewScripted(t)
		srv := upstashtest.NewScripted(t, upstashtest.Redirect(code, elsewhere.URL+"/pipeline"))
		for _, tr := range []http.RoundTripper{nil, &http.Transport{}} {
			s := open(t, srv.URL, func(c *upstash.Config) { c.Transport = tr })
			_, err := s.Take(t.Context(), five)
			configured.check(t, err)
		}
		require.Empty(t, elsewhere.Requests())
		require.Len(t, srv.Requests(), 2)
	}
}

// TestNothingSent: failures before the request left are definite.
func TestNothingSent(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refusingURL := "http://" + ln.Addr().String()
	require.NoError(t, ln.Close())
	_, err = open(t, refusingURL).Take(t.Context(), five)
	refusing.check(t, err)

	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	secure.StartTLS()
	defer secure.Close()
	_, err = open(t, secure.URL).Take(t.Context(), five)
	configured.check(t, err)
	var cert *tls.CertificateVerificationError
	require.ErrorAs(t, err, &cert)

	plain := upstashtest.NewScripted(t)
	_, err = open(t, "https"+strings.TrimPrefix(plain.URL, "http")).Take(t.Context(), five)
	require.True(t, fault.Definite(err), err)
	require.Empty(t, plain.Requests())

	dial := func(err error) func(*upstash.Config) {
		return func(c *upstash.Config) {
			c.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err }}
		}
	}
	_, err = open(t, "https://gone.example", dial(&net.DNSError{Err: "no such host", Name: "gone.example", IsNotFound: true})).Take(t.Context(), five)
	configured.check(t, err)
	_, err = open(t, "https://gone.example", dial(&net.DNSError{Err: "server misbehaving", IsTemporary: true})).Take(t.Context(), five)
	refusing.check(t, err)
}

// TestDialDeadline: a host that swallows packets costs the deadline, and what happened
// is definite.
func TestDialDeadline(t *testing.T) {
	swallow := func(c *upstash.Config) {
		c.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
	}
	s := open(t, "https://vpc.example", swallow, timeout(50*time.Millisecond))
	_, err := s.Take(t.Context(), five)
	refusing.check(t, err)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	require.EqualError(t, err, "upstash: no connection in time")

	// So does the caller's own deadline. If he leaves he gets his own error: nothing was
	// sent.
	s = open(t, "https://vpc.example", swallow)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Take(ctx, five)
	refusing.check(t, err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualError(t, err, "upstash: no connection in time")
	ctx, leave := context.WithCancel(t.Context())
	s = open(t, "https://vpc.example", func(c *upstash.Config) {
		c.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			leave()
			<-ctx.Done()
			return nil, ctx.Err()
		}}
	})
	_, err = s.Take(ctx, five)
	require.Equal(t, context.Canceled, err)
}

// TestCaller: whoever is gone before the request is sent gets his own error and is not
// counted; later he may have been.
func TestCaller(t *testing.T) {
	srv := upstashtest.NewScripted(t, upstashtest.Hang())
	s := open(t, srv.URL)
	untouched := open(t, srv.URL, func(c *upstash.Config) {
		c.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			t.Error("the transport was asked")
			return nil, errors.New("asked")
		})
	})
	past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, tc := range []struct {
		ctx  context.Context
		want error
	}{{past, context.DeadlineExceeded}, {gone, context.Canceled}} {
		_, err := untouched.Take(tc.ctx, five)
		require.Equal(t, tc.want, err)
		_, err = untouched.Peek(tc.ctx, five)
		require.Equal(t, tc.want, err)
		require.Equal(t, tc.want, untouched.Reset(tc.ctx, five))
		require.Equal(t, tc.want, untouched.Refund(tc.ctx, five))
		_, err = untouched.TakeOwing(tc.ctx, five, 1, time.Second)
		require.Equal(t, tc.want, err)
	}

	ctx, leave := context.WithCancel(t.Context())
	srv.Script(func(x *upstashtest.Exchange) bool { x.Apply(); leave(); return upstashtest.Hang()(x) })
	_, err := s.Take(ctx, five)
	unavailable.check(t, err)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, srv.Applied("INCR"))

	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	srv.Script(upstashtest.Lost(upstashtest.Hang()))
	_, err = s.Take(ctx, five)
	unavailable.check(t, err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestNoCallAtAll: what can be decided or refused without the server is.
func TestNoCallAtAll(t *testing.T) {
	srv := upstashtest.NewScripted(t)
	s := open(t, srv.URL)
	fixed := stores.FixedWindow(5, time.Minute)
	for _, l := range []stores.Limit{stores.SlidingLog(1001, time.Minute), stores.SlidingLog(1<<40, time.Hour).BlockFor(time.Hour)} {
		hit := stores.Hit{Key: "k", Limit: l}
		_, err := s.Take(t.Context(), hit)
		require.ErrorIs(t, err, errors.ErrUnsupported, l)
		_, err = s.Peek(t.Context(), hit)
		require.ErrorIs(t, err, errors.ErrUnsupported, l)
		require.ErrorIs(t, s.Reset(t.Context(), hit), errors.ErrUnsupported, l)
		require.ErrorIs(t, s.Refund(t.Context(), hit), errors.ErrUnsupported, l)
		_, err = s.TakeOwing(t.Context(), hit, 1, time.Second)
		require.ErrorIs(t, err, errors.ErrUnsupported, l)
		n, err := s.TakeAll(t.Context(), []stores.Hit{{Key: "k", Limit: fixed}, hit}, make([]stores.Decision, 2))
		require.ErrorIs(t, err, errors.ErrUnsupported, l)
		require.Zero(t, n)
		require.ErrorIs(t, s.Supports(l), errors.ErrUnsupported, l)
		require.ErrorContains(t, s.Supports(l), "use sliding", "names the alternatives")
	}
	for _, l := range []stores.Limit{
		fixed, stores.Cooldown(time.Hour), stores.SlidingWindow(5, time.Minute), stores.SlidingLog(1000, time.Minute), stores.TokenBucket(5, time.Minute),
		stores.LeakyBucket(5, time.Minute), fixed.BlockFor(time.Hour), stores.Cooldown(time.Minute).BlockFor(time.Hour),
	} {
		require.NoError(t, s.Supports(l))
		for _, cost := range []int{6, math.MaxInt} {
			if l.Quota <= 5 {
				d, certain, err := s.TakeCertain(t.Context(), stores.Hit{Key: "k", Limit: l, Cost: cost})
				require.NoError(t, err)
				require.Equal(t, stores.Decision{}, d)
				require.False(t, certain)
			}
		}
	}

	for _, l := range []stores.Limit{{}, stores.FixedWindow(0, time.Minute), stores.FixedWindow(-1, time.Minute), stores.FixedWindow(5, 0), stores.FixedWindow(5, -time.Second)} {
		_, err := s.Take(t.Context(), stores.Hit{Key: "k", Limit: l})
		require.ErrorIs(t, err, stores.ErrInvalid, "%v", l)
		require.ErrorIs(t, s.Supports(l), stores.ErrInvalid)
	}
	for _, key := range []string{"", "a\nb", "\u00e4", strings.Repeat("x", 513)} {
		_, err := s.Take(t.Context(), stores.Hit{Key: key, Limit: fixed})
		require.ErrorIs(t, err, stores.ErrInvalid)
	}

	d, certain, err := s.TakeCertain(t.Context(), stores.Hit{Key: "k", Limit: fixed, Cost: 6})
	require.NoError(t, err)
	require.Equal(t, stores.Decision{}, d, "refused for good: no RetryAfter")
	require.False(t, certain)
	hit := stores.Hit{Key: "k", Limit: fixed, Cost: 2}
	for _, tc := range []struct {
		owed  int
		until time.Duration
	}{{-1, time.Second}, {1, -1}, {1, time.Minute + 1}, {0, 2 * time.Minute}, {math.MinInt, 0}} {
		_, err = s.TakeOwing(t.Context(), hit, tc.owed, tc.until)
		require.ErrorIs(t, err, stores.ErrInvalid)
	}
	hit.Cost = -1
	require.ErrorIs(t, s.Refund(t.Context(), hit), stores.ErrInvalid)
	require.Empty(t, srv.Requests())
}

// TestRequest: one POST with the right headers and nothing that makes net/http or a
// server send it again.
func TestRequest(t *testing.T) {
	srv := upstashtest.NewScripted(t)
	s := open(t, srv.URL+"/prefix/")
	hit := stores.Hit{Key: `a"b\c`, Limit: stores.FixedWindow(5, 1500*time.Microsecond)}
	_, err := s.Take(t.Context(), hit)
	require.NoError(t, err)
	r := srv.Requests()[0]
	require.Equal(t, "POST", r.Method)
	require.Equal(t, "/prefix/pipeline", r.Path)
	require.Equal(t, [][]string{{"INCR", hit.Key}, {"PEXPIRE", hit.Key, "2", "NX"}, {"PTTL", hit.Key}}, r.Commands)
	require.Equal(t, []string{"application/json"}, r.Header["Content-Type"])
	require.Equal(t, []string{"Bearer " + upstashtest.DefaultToken}, r.Header["Authorization"])
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "Accept-Encoding", "Cookie", "Upstash-Encoding"} {
		require.NotContains(t, r.Header, name)
	}
}

// TestTransportMayChangeHeaders: a Transport of the user's own that adds headers must
// not add them for others too.
func TestTransportMayChangeHeaders(t *testing.T) {
	srv := upstashtest.New(t)
	s := open(t, srv.URL, func(c *upstash.Config) {
		c.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			r.Header.Add("X-Trace", "1")
			if len(r.Header.Values("X-Trace")) != 1 {
				t.Error("another request's header")
			}
			return http.DefaultTransport.RoundTrip(r)
		})
	})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { _, _ = s.Take(t.Context(), five) })
	}
	wg.Wait()
	require.Equal(t, 20, srv.Count("INCR"))

	s = open(t, srv.URL, func(c *upstash.Config) {
		c.Transport = roundTripper(func(*http.Request) (*http.Response, error) { return nil, nil })
	})
	_, err := s.Take(t.Context(), five)
	refusing.check(t, err)
}
