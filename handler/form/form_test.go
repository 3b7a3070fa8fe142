package form

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
)

// A program's post and an accepted one can't be told apart by anything in the answer,
// nothing is counted for it, and nobody is asked.
func TestDecoyIsTheSuccess(t *testing.T) {
	foreign := newSite(t, Config{ID: "other"})
	tests := []struct {
		name string
		post func(t *testing.T, s *site) *http.Request
	}{
		{"honeypot", func(t *testing.T, s *site) *http.Request {
			return request(s.filled(t, s.keys[0].honeypot, "cheap pills"))
		}},
		{"honeypot with a blank", func(t *testing.T, s *site) *http.Request {
			return request(s.filled(t, s.keys[0].honeypot, " "))
		}},
		{"honeypot given twice, empty first", func(t *testing.T, s *site) *http.Request {
			values := s.filled(t)
			values[s.keys[0].honeypot] = []string{"", "spam"}
			return request(values)
		}},
		{"honeypot given twice, empty last", func(t *testing.T, s *site) *http.Request {
			values := s.filled(t)
			values[s.keys[0].honeypot] = []string{"spam", ""}
			return request(values)
		}},
		{"honeypot as a file", func(t *testing.T, s *site) *http.Request {
			values := s.filled(t)
			values.Del(s.keys[0].honeypot)
			return multipartRequest(t, values, map[string]string{s.keys[0].honeypot: ""})
		}},
		{"no token", func(t *testing.T, s *site) *http.Request {
			values := s.filled(t)
			values.Del(tokenField)
			return request(values)
		}},
		{"token in the URL", func(t *testing.T, s *site) *http.Request {
			values := s.filled(t)
			r := request(url.Values{"name": {"x"}})
			r.URL.RawQuery = values.Encode()
			return r
		}},
		{"no body", func(t *testing.T, s *site) *http.Request { return request(nil) }},
		{"empty token", func(t *testing.T, s *site) *http.Request { return request(s.filled(t, tokenField, "")) }},
		{"invented token", func(t *testing.T, s *site) *http.Request {
			return request(s.filled(t, tokenField, strings.Repeat("A", tokenLength)))
		}},
		{"token of another form", func(t *testing.T, s *site) *http.Request {
			return request(s.filled(t, tokenField, foreign.mint(kindFirst, time.Now())))
		}},
		{"two tokens", func(t *testing.T, s *site) *http.Request {
			values := s.filled(t)
			values[tokenField] = append(values[tokenField], s.mint(kindFirst, time.Now()))
			return request(values)
		}},
		{"the same token twice", func(t *testing.T, s *site) *http.Request {
			values := s.filled(t)
			values[tokenField] = append(values[tokenField], values[tokenField]...)
			return request(values)
		}},
		{"token as a file", func(t *testing.T, s *site) *http.Request {
			values := s.filled(t)
			token := values.Get(tokenField)
			values.Del(tokenField)
			return multipartRequest(t, values, map[string]string{tokenField: token})
		}},
		{"token with a broken escape", func(t *testing.T, s *site) *http.Request {
			r := httptest.NewRequest("POST", "/contact", strings.NewReader(tokenField+"=%zz"))
			return with(r, "Content-Type: "+typeURLEncoded)
		}},
		{"broken honeypot beside a good token", func(t *testing.T, s *site) *http.Request {
			values := s.filled(t)
			values.Set(s.keys[0].honeypot, "x")
			r := httptest.NewRequest("POST", "/contact", strings.NewReader(values.Encode()+"&x=%zz"))
			return with(r, "Content-Type: "+typeURLEncoded)
		}},
		{"two captcha answers", func(t *testing.T, s *site) *http.Request {
			values := s.filled(t)
			values["captcha-token"] = []string{"a", "b"}
			return request(values)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newShared(t)
				asked := 0
				s := newSite(t, Config{
					Guard:   newGuard(t, store, 5),
					Captcha: judgeFunc(func(context.Context, string, netip.Addr) error { asked++; return nil }),
				})
				r := test.post(t, s)
				good := s.filled(t, "captcha-token", "x")
				time.Sleep(3 * time.Second)
				decoy := s.serve(r)
				require.Zero(t, store.taken(), "nothing is counted")
				require.Zero(t, asked)
				require.Zero(t, s.next.count())

				person := s.serve(request(good))
				require.Equal(t, 1, s.next.count())
				require.Equal(t, 1, asked)
				require.Equal(t, 2, store.taken(), "the guard's hit and the token's")
				require.Equal(t, person.Code, decoy.Code)
				require.Equal(t, person.Result().Header, decoy.Result().Header)
				require.Equal(t, person.Body.String(), decoy.Body.String())
			})
		})
	}
}

func TestTooFastIsADecoy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Config{})
		values := s.filled(t)
		require.Equal(t, 303, s.serve(request(values)).Code)
		time.Sleep(1400 * time.Millisecond)
		require.Equal(t, 303, s.serve(request(values)).Code)
		require.Zero(t, s.next.count())
		// It was no use of the token either.
		time.Sleep(time.Second)
		for range 5 {
			require.Equal(t, 303, s.serve(request(values)).Code)
		}
		require.Equal(t, 5, s.next.count())
	})
}

// Another layer's fields stay, also RateLimit fields of another guard outside; those of
// the form's own guard are not there on success, and are on a refusal.
func TestHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Config{Guard: newGuard(t, newShared(t), 1)})
		outer := newGuard(t, newShared(t), 100)
		send := func(values url.Values) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			outer.Handler(s.Handler(s.next)).ServeHTTP(w, request(values))
			return w
		}
		values, bot := s.filled(t), s.filled(t, s.keys[0].honeypot, "x")
		time.Sleep(3 * time.Second)
		first := send(values).Header().Get("RateLimit")
		require.Equal(t, `"contact";r=99;t=600`, first, "of the outer guard alone")
		require.Equal(t, `"contact";r=98;t=600`, send(bot).Header().Get("RateLimit"))
		refused := send(values)
		require.Equal(t, 429, refused.Code)
		require.Equal(t, "600", refused.Header().Get("Retry-After"))
		require.Equal(t, `"contact";r=0;t=600`, refused.Header().Get("RateLimit"))
		require.Equal(t, 1, s.next.count())
	})
}

func TestGuardsRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		guard, err := newGuard(t, store, 1).With(handler.Policy{
			Name: "contact", Limit: stores.FixedWindow(1, time.Minute), Key: handler.ByIP(),
			Refused: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				v, _ := handler.FromContext(r.Context())
				w.WriteHeader(v.Status)
				fmt.Fprint(w, r.PostFormValue("name"))
			}),
		})
		require.NoError(t, err)
		s := newSite(t, Config{Guard: guard})
		a, b := s.filled(t), s.filled(t)
		time.Sleep(3 * time.Second)
		require.Equal(t, 303, s.serve(request(a)).Code)
		before := store.taken()
		// Whoever is refused writes nothing, whatever number of fresh tokens he brings.
		for range 100 {
			w := s.serve(request(b))
			require.Equal(t, 429, w.Code)
			require.Equal(t, "Ada", w.Body.String(), "the page of the site can show what was typed")
		}
		require.Equal(t, before+1, store.taken(), "one refusal, which is remembered")
		time.Sleep(time.Minute)
		for range 1 {
			require.Equal(t, 303, s.serve(request(b)).Code, "waiting as told is enough, with the same token")
		}
		require.Equal(t, 2, s.next.count())
	})
}

// What the guard puts into the context reaches the handler.
func TestSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard, err := newGuard(t, newShared(t), 1).With(handler.Policy{Name: "s", Limit: stores.FixedWindow(1, time.Minute), Key: handler.ByIP(), Mode: handler.Signal})
		require.NoError(t, err)
		s := newSite(t, Config{Guard: guard})
		var allowed []bool
		s.next.then = func(_ http.ResponseWriter, r *http.Request) {
			v, ok := handler.FromContext(r.Context())
			require.True(t, ok)
			allowed = append(allowed, v.Allowed)
		}
		values := s.filled(t)
		time.Sleep(3 * time.Second)
		s.serve(request(values))
		s.serve(request(values))
		require.Equal(t, []bool{true, false}, allowed)
	})
}

func TestOnlyPost(t *testing.T) {
	s := newSite(t, Config{})
	for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "post", "TRACE", ""} {
		r := request(s.filled(t))
		r.Method = method
		w := s.serve(r)
		require.Equal(t, 405, w.Code, method)
		require.Equal(t, "POST", w.Header().Get("Allow"))
	}
	require.Zero(t, s.next.count())
}

// A store that fails is not a pass. (Behind a failover memory decides, and nobody sees
// that.)
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		s := newSite(t, Config{Guard: newGuard(t, store, 100)})
		values := s.filled(t)
		time.Sleep(3 * time.Second)
		store.failWith(stores.ErrUnavailable)
		codes := map[int]int{}
		for range 20 {
			codes[s.serve(request(values)).Code]++
		}
		require.Equal(t, map[int]int{303: 5, 409: 15}, codes)

		// A policy whose store errs instead of deciding.
		gone := newSite(t, Config{})
		gone.uses = nil
		w := gone.serve(request(values, browser))
		require.Equal(t, 503, w.Code)
		require.Equal(t, "5", w.Header().Get("Retry-After"))
		require.Zero(t, gone.next.count())
		require.Contains(t, gone.log.String(), "instead of a decision")
	})
}

// The default answers, for a form that names neither.
func TestDefaultDecoy(t *testing.T) {
	f, err := New(Config{ID: "x", Secret: secret})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	f.Handler(http.NotFoundHandler()).ServeHTTP(w, request(nil))
	require.Equal(t, 200, w.Code)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Contains(t, w.Body.String(), "<h1>Thank you</h1>")
	require.True(t, strings.HasSuffix(w.Body.String(), "</html>\n"))
}

// The log tells of what may be a misconfiguration, not of each post, and holds nothing
// of it.
func TestForgeriesAreReported(t *testing.T) {
	s := newSite(t, Config{})
	for range 150 {
		s.serve(request(url.Values{"name": {"Ada"}})) // without a token, as any program
	}
	require.Empty(t, s.log.String())
	for range 150 {
		s.serve(request(url.Values{tokenField: {"forged-token"}, "name": {"Ada"}}))
	}
	require.Equal(t, 3, strings.Count(s.log.String(), "did not sign"), "1, 10, 100")
	require.NotContains(t, s.log.String(), "forged-token")
	require.NotContains(t, s.log.String(), "Ada")
	require.Equal(t, 3, strings.Count(s.log.String(), "\n"))
}

// The Decoy gets the body too, for whoever wants to look at what programs send.
func TestDecoyGetsTheBody(t *testing.T) {
	var got string
	s := newSite(t, Config{Decoy: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		got = string(b)
	})})
	values := url.Values{"name": {"spam"}}
	s.serve(request(values))
	require.Equal(t, values.Encode(), got)
}
