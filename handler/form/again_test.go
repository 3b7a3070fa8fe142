package form

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// resend is what a browser sends when the button of an answer is clicked.
func resend(t testing.TB, w *httptest.ResponseRecorder) *http.Request {
	t.Helper()
	values := url.Values{}
	var form tag
	for _, e := range tags(t, w.Body.String()) {
		switch e.name {
		case "form":
			form = e
		case "input":
			// Browsers send each line end as CR LF, whatever the page had.
			values.Add(e.attr["name"], strings.ReplaceAll(e.attr["value"], "\n", "\r\n"))
		}
	}
	require.Equal(t, "post", form.attr["method"], w.Body.String())
	require.NotContains(t, form.attr, "action", "to where it was sent")
	if form.attr["enctype"] == typeMultipart {
		return with(multipartRequest(t, values, nil), browser)
	}
	return request(values, browser)
}

// A person who took too long, or corrected often, loses nothing: one click on the page
// that he gets sends what he wrote.
func TestNothingIsLost(t *testing.T) {
	awkward := []string{"name", `"><script>alert(1)</script>`, "message", "a\r\nb & <b>&amp; '\" é 李 \u202e", "empty", "", `od"d<name>`, "1"}
	tests := []struct {
		name  string
		spoil func(t *testing.T, s *site, values url.Values)
		says  string
	}{
		{"too old", func(t *testing.T, s *site, values url.Values) { time.Sleep(3 * time.Hour) }, "open for a long time"},
		{"used up", func(t *testing.T, s *site, values url.Values) {
			time.Sleep(3 * time.Second)
			for range 5 {
				require.Equal(t, 303, s.serve(request(values)).Code)
			}
			s.next.got = nil
		}, "used several times"},
		{"from the future", func(t *testing.T, s *site, values url.Values) {
			values.Set(tokenField, s.mint(kindFirst, time.Now().Add(time.Hour)))
		}, "open for a long time"},
	}
	for _, test := range tests {
		for _, parts := range []bool{false, true} {
			t.Run(fmt.Sprint(test.name, parts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSite(t, Config{Guard: newGuard(t, newShared(t), 100)})
					values := s.filled(t, awkward...)
					values["several"] = []string{"1", "2"}
					test.spoil(t, s, values)
					r := request(values)
					if parts {
						r = multipartRequest(t, values, nil)
					}
					w := s.serve(with(r, browser))
					require.Equal(t, 409, w.Code)
					require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
					require.Contains(t, w.Body.String(), test.says)
					require.NotContains(t, w.Body.String(), "<script")
					require.NotContains(t, w.Body.String(), values.Get(tokenField), "a fresh token")
					require.Zero(t, s.next.count())

					// Whoever clicks at once is no program for that, and has to wait no longer the
					// more often he clicks.
					again := resend(t, w)
					require.Equal(t, parts, strings.HasPrefix(again.Header.Get("Content-Type"), typeMultipart))
					for range 3 {
						w = s.serve(again)
						require.Equal(t, 409, w.Code)
						require.Contains(t, w.Body.String(), "very fast")
						again = resend(t, w)
						time.Sleep(500 * time.Millisecond)
					}
					require.Zero(t, s.next.count())
					require.Equal(t, 303, s.serve(again).Code)
					require.Equal(t, 1, s.next.count())
					for name, want := range values {
						if name != tokenField {
							require.Equal(t, want, s.next.got[0][name], name)
						}
					}
					require.Len(t, s.next.got[0], len(values), "and no more")
				})
			})
		}
	}
}

// The page comes behind the guard: an old token is no way to have pages made without a
// limit.
func TestAgainIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Config{Guard: newGuard(t, newShared(t), 5)})
		values := s.filled(t)
		time.Sleep(3 * time.Hour)
		codes := map[int]int{}
		for range 100 {
			codes[s.serve(request(values, browser)).Code]++
		}
		require.Equal(t, map[int]int{409: 5, 429: 95}, codes)
	})
}

func TestAgainForPrograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Config{})
		values := s.filled(t)
		time.Sleep(3 * time.Hour)
		for _, accept := range []string{"", "*/*", "application/json"} {
			w := s.serve(request(values, "Accept: "+accept))
			require.Equal(t, 409, w.Code)
			require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
			require.Equal(t, "Accept", w.Header().Get("Vary"))
			require.JSONEq(t, `{"type":"about:blank","title":"Conflict","status":409,"detail":"`+tooLate.text+`"}`, w.Body.String())
		}
	})
}

// Where the default page could not send the same once more it does not pretend to.
func TestAgainWithoutAButton(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Config{})
		values := s.filled(t)
		time.Sleep(3 * time.Hour)
		w := s.serve(with(multipartRequest(t, values, map[string]string{"upload": "text"}), browser))
		require.Equal(t, 409, w.Code)
		require.NotContains(t, w.Body.String(), "<form")
		require.Contains(t, w.Body.String(), "choose your file")
		w = s.serve(with(multipartRequest(t, values, map[string]string{"upload": ""}), browser))
		require.Contains(t, w.Body.String(), "<form", "no file was chosen")

		s = newSite(t, Config{Captcha: judgeFunc(nil)})
		w = s.serve(request(values, browser))
		require.Equal(t, 409, w.Code)
		require.NotContains(t, w.Body.String(), "<form")
		require.Contains(t, w.Body.String(), "load the form anew")
	})
}

// A site's own page learns what is wrong, reads what was typed, and shows it with a
// token that works.
func TestOwnAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *site
		var statuses []int
		s = newSite(t, Config{Guard: newGuard(t, newShared(t), 100), Again: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status, text := Trouble(r.Context())
			statuses = append(statuses, status)
			if status == 415 {
				b, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				require.Empty(t, b, "what is no form is not there to be read")
			}
			require.NotEmpty(t, text)
			w.WriteHeader(status)
			fmt.Fprintf(w, `<form method="post"><input name="name" value="%s">%s</form>`, html.EscapeString(r.PostFormValue("name")), s.FieldsAgain(r))
		})})
		values := s.filled(t)
		time.Sleep(3 * time.Hour)
		w := s.serve(request(values))
		require.Equal(t, 409, w.Code)
		again := resend(t, w)
		time.Sleep(2 * time.Second)
		require.Equal(t, 303, s.serve(again).Code)
		require.Equal(t, "Ada", s.next.got[0].Get("name"))

		require.Equal(t, 415, s.serve(request(values, "Content-Type: text/plain")).Code)
		require.Equal(t, []int{409, 415}, statuses)
		status, text := Trouble(t.Context())
		require.Zero(t, status)
		require.Empty(t, text)
	})
}

// A form that comes back for a correction keeps its token, so that the corrected one may
// be sent at once, and gets another one when that is used up.
func TestCorrections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := newSite(t, Config{Uses: 3}), newSite(t, Config{ID: "other"})
		s.next.then = func(w http.ResponseWriter, r *http.Request) {
			_, ok := other.parse(tokenOf(t, other.FieldsAgain(r)))
			require.True(t, ok, "another form on the page has its own")
			status, _ := Trouble(r.Context())
			require.Zero(t, status)
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprintf(w, `<form method="post"><input name="name" value="x">%s</form>`, s.FieldsAgain(r))
		}
		w := &httptest.ResponseRecorder{}
		r := request(s.filled(t))
		time.Sleep(3 * time.Second)
		var tokens []string
		for n := range 10 {
			w = s.serve(r)
			require.Equal(t, 422, w.Code, "correction %d", n)
			tokens = append(tokens, tokenOf(t, w.Body.String()))
			r = resend(t, w)
			if n%3 == 2 {
				require.NotEqual(t, tokens[n-1], tokens[n], "the token is used up")
				require.Equal(t, 409, s.serve(r).Code, "a fresh one has to wait")
				time.Sleep(2 * time.Second)
				r = resend(t, w)
				continue
			}
			if n%3 == 1 {
				require.Equal(t, tokens[n-1], tokens[n])
			}
		}
		// Elsewhere it is Fields.
		token, ok := other.parse(tokenOf(t, other.FieldsAgain(r)))
		require.True(t, ok)
		require.Equal(t, kindFirst, token.kind)
	})
}

// Also for a token that may be sent again, MinFill holds: being found out once buys no
// program a faster token.
func TestAgainIsNoShortcut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Config{})
		old := s.filled(t)
		time.Sleep(3 * time.Hour)
		for range 20 {
			again := resend(t, s.serve(request(old, browser)))
			require.Equal(t, 409, s.serve(again).Code)
		}
		require.Zero(t, s.next.count())
	})
}
