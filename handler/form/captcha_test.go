package form

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
)

// What has arrived whole is taken though its sender has gone, and counted: hanging up saves
// nothing. Its deadline holds.
func TestCallerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := newSite(t, Config{Guard: newGuard(t, newShared(t), 7), Captcha: judgeFunc(func(ctx context.Context, _ string, _ netip.Addr) error {
			asked++
			end, ok := ctx.Deadline()
			require.True(t, ok)
			if asked <= 3 {
				require.NoError(t, ctx.Err())
				require.Equal(t, captchaTime, time.Until(end))
				return nil
			}
			require.LessOrEqual(t, time.Until(end), captchaTime)
			<-ctx.Done()
			return ctx.Err()
		})})
		s.next.then = func(_ http.ResponseWriter, r *http.Request) { require.NoError(t, r.Context().Err()) }
		values := s.filled(t, "captcha-token", "x")
		time.Sleep(3 * time.Second)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for n := range 3 {
			s.serve(request(values).WithContext(gone))
			require.Equal(t, n+1, s.next.count())
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		require.Equal(t, 503, s.serve(request(values).WithContext(short)).Code)
		require.Equal(t, time.Second, time.Since(begin))

		require.Equal(t, 503, s.serve(request(values)).Code)
		for range 2 {
			require.Equal(t, 409, s.serve(request(values).WithContext(gone)).Code)
		}
		require.Equal(t, 429, s.serve(request(values).WithContext(gone)).Code)
		require.Equal(t, 3, s.next.count())
	})
}

func TestCaptchaOrderAndAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tokens []string
		var clients []netip.Addr
		store := newShared(t)
		s := newSite(t, Config{
			Guard: newGuard(t, store, 1),
			Captcha: judgeFunc(func(_ context.Context, token string, client netip.Addr) error {
				require.Equal(t, 2, store.taken(), "after the guard and the token")
				tokens, clients = append(tokens, token), append(clients, client)
				return nil
			}),
		})
		values := s.filled(t, "captcha-token", "solved")
		time.Sleep(3 * time.Second)
		require.Equal(t, 303, s.serve(from(request(values), 7)).Code)
		require.Equal(t, 429, s.serve(from(request(values), 7)).Code, "a refused client does not reach it")
		time.Sleep(3 * time.Hour)
		require.Equal(t, 409, s.serve(from(request(values), 7)).Code, "nor does a token that is too old")
		require.Equal(t, []string{"solved"}, tokens)
		require.Equal(t, []netip.Addr{netip.MustParseAddr("192.0.2.7")}, clients)
	})
}

func TestCaptchaVerdicts(t *testing.T) {
	outage := fmt.Errorf("captcha: %w", stores.ErrUnavailable)
	tests := []struct {
		name   string
		answer string
		err    error
		status int
		next   int
		says   string
	}{
		{"a person", "x", nil, 303, 1, ""},
		{"a program", "x", ErrBot, 303, 0, ""},
		{"a program, wrapped", "x", fmt.Errorf("%w: why", ErrBot), 303, 0, ""},
		{"expired", "x", fmt.Errorf("%w: late", ErrStale), 409, 0, "complete the check"},
		{"not solved", "", nil, 409, 0, "complete the check"},
		{"down", "x", outage, 503, 0, "just now"},
		{"down, of another kind", "x", errors.New("boom"), 503, 0, "just now"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, Config{Captcha: judgeFunc(func(context.Context, string, netip.Addr) error { return test.err })})
				values := s.filled(t, "captcha-token", test.answer)
				time.Sleep(3 * time.Second)
				w := s.serve(request(values, browser))
				require.Equal(t, test.status, w.Code)
				require.Equal(t, test.next, s.next.count())
				require.Contains(t, w.Body.String(), test.says)
				if test.status == 503 {
					require.Equal(t, "5", w.Header().Get("Retry-After"))
				}
				if test.status == 303 {
					require.Equal(t, "contact", w.Header().Get("X-Form"))
				}
			})
		})
	}
}

// While the captcha can't be asked a guard with limits of its own decides, so whoever
// keeps it from being asked has won no more than that.
func TestCaptchaDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := newGuard(t, newShared(t), 1000)
		few, err := guard.With(handler.Policy{Name: "unasked", Limit: stores.FixedWindow(3, time.Hour), Key: handler.Everyone(), ShowQuota: true})
		require.NoError(t, err)
		verdict := errors.New("boom")
		s := newSite(t, Config{Guard: guard, CaptchaDown: few, Captcha: judgeFunc(func(context.Context, string, netip.Addr) error { return verdict })})
		codes := map[int]int{}
		for n := range 50 {
			values := s.filled(t, "captcha-token", "x")
			time.Sleep(3 * time.Second)
			w := s.serve(from(request(values), n))
			codes[w.Code]++
			if w.Code == 303 {
				require.Empty(t, w.Header().Get("RateLimit"), "as in a success")
				require.Equal(t, "kept", w.Header().Get("X-Outer"))
			} else {
				require.NotEmpty(t, w.Header().Get("Retry-After"))
			}
		}
		require.Equal(t, map[int]int{303: 3, 429: 47}, codes)
		require.Equal(t, 3, s.next.count())
		require.Equal(t, 2, strings.Count(s.log.String(), "could not be asked"), "the first time and the tenth")

		verdict = nil
		values := s.filled(t, "captcha-token", "x")
		time.Sleep(3 * time.Second)
		require.Equal(t, 303, s.serve(request(values)).Code)
		require.Equal(t, 303, s.serve(request(values)).Code)
		require.Equal(t, 1, strings.Count(s.log.String(), "answers again"))

		// A program is none the better for it.
		verdict = ErrBot
		require.Equal(t, 303, s.serve(request(values)).Code)
		require.Equal(t, 5, s.next.count())
	})
}
