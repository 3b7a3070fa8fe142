package form

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
)

// The handler reads what was sent, to the byte, in every form that net/http knows.
func TestBodyIsHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Config{Uses: 100, Guard: newGuard(t, newShared(t), 100)})
		values := s.filled(t, "files", "no")
		time.Sleep(3 * time.Second)
		var closed int
		tests := []struct {
			name string
			make func() *http.Request
		}{
			{"urlencoded", func() *http.Request { return request(values) }},
			{"with a charset", func() *http.Request { return request(values, "Content-Type: "+typeURLEncoded+"; charset=utf-8") }},
			{"type in capitals", func() *http.Request { return request(values, "Content-Type: Application/X-WWW-Form-URLEncoded") }},
			{"multipart", func() *http.Request { return multipartRequest(t, values, nil) }},
			{"multipart with a file", func() *http.Request { return multipartRequest(t, values, map[string]string{"upload": "text"}) }},
			{"of unknown length", func() *http.Request {
				r := request(values)
				r.ContentLength = -1
				return r
			}},
			{"a byte at a time", func() *http.Request {
				r := request(values)
				r.Body = io.NopCloser(iotest.OneByteReader(r.Body))
				return r
			}},
		}
		for _, test := range tests {
			r := test.make()
			sent, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			closed = 0
			r.Body = struct {
				io.Reader
				io.Closer
			}{bytes.NewReader(sent), closer(func() error { closed++; return nil })}
			length := r.ContentLength
			called := false
			s.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				called = true
				require.Nil(t, r.Form, "nothing is parsed yet")
				require.Nil(t, r.MultipartForm)
				require.Equal(t, length, r.ContentLength)
				got, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				require.Equal(t, sent, got)
				require.NoError(t, r.Body.Close())
				require.Equal(t, 1, closed)
				r.Body = io.NopCloser(bytes.NewReader(got))
				require.Equal(t, "Ada", r.PostFormValue("name"))
			})).ServeHTTP(httptest.NewRecorder(), r)
			require.True(t, called, test.name)
		}
	})
}

type closer func() error

func (c closer) Close() error { return c() }

// A guard whose key is a field of the form reads the same body, before the handler does.
func TestGuardReadsTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard, err := newGuard(t, newShared(t), 1).With(handler.Policy{Name: "email", Limit: stores.FixedWindow(1, time.Hour), Key: handler.ByForm("email").Email()})
		require.NoError(t, err)
		s := newSite(t, Config{Guard: guard, Uses: 100})
		ada, bob := s.filled(t, "email", "ada@example.com"), s.filled(t, "email", "bob@example.com")
		time.Sleep(3 * time.Second)
		for _, step := range []struct {
			r      *http.Request
			status int
		}{
			{request(ada), 303}, {multipartRequest(t, ada, nil), 429}, {multipartRequest(t, bob, nil), 303}, {request(bob), 429},
		} {
			require.Equal(t, step.status, s.serve(step.r).Code)
		}
		require.Equal(t, 2, s.next.count())
		require.Equal(t, "bob@example.com", s.next.got[1].Get("email"))
	})
}

func TestUnreadableBodies(t *testing.T) {
	s := newSite(t, Config{})
	good := s.filled(t).Encode()
	large := tokenField + "=x&a=" + strings.Repeat("x", 20<<20)
	tests := []struct {
		name, kind, body string
		status           int
	}{
		{"no type", "", good, 415},
		{"JSON", "application/json", `{"form-token":"x"}`, 415},
		{"plain text, as a form can send it", "text/plain", "form-token=x", 415},
		{"another multipart", "multipart/mixed; boundary=x", "--x--\r\n", 415},
		{"broken parameter", typeURLEncoded + "; =", good, 415},
		{"two types in one", typeURLEncoded + ", text/plain", good, 415},
		{"no boundary", typeMultipart, "--x--\r\n", 400},
		{"no end", typeMultipart + "; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"form-token\"\r\n\r\nx", 400},
		{"no multipart within", typeMultipart + "; boundary=x", "hello", 400},
		{"nothing within", typeMultipart + "; boundary=x", "", 400},
		{"1001 parts", typeMultipart + "; boundary=x", strings.Repeat("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n", 1001) + "--x--\r\n", 400},
		{"20 MB", typeURLEncoded, large, 413},
		{"20 MB of multipart", typeMultipart + "; boundary=x", large, 413},
		{"20 MB of separators", typeURLEncoded, strings.Repeat("&", 20<<20), 413},
		{"as much as may be", typeURLEncoded, "a=" + strings.Repeat("x", defaultMaxBody-2), 303},
		{"one byte more", typeURLEncoded, "a=" + strings.Repeat("x", defaultMaxBody-1), 413},
	}
	for _, test := range tests {
		for _, length := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				r := httptest.NewRequest("POST", "/contact", strings.NewReader(test.body))
				read := &countingReader{r: strings.NewReader(test.body)}
				r.Body = io.NopCloser(read)
				if !length {
					r.ContentLength = -1
				}
				if test.kind != "" {
					r.Header.Set("Content-Type", test.kind)
				}
				w := s.serve(with(r, browser))
				require.Equal(t, test.status, w.Code)
				require.Zero(t, s.next.count())
				require.LessOrEqual(t, read.n, defaultMaxBody+1, "no more is read")
				if test.status >= 400 {
					require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
					require.Contains(t, w.Body.String(), "<h1>Not sent yet</h1>")
					require.NotContains(t, w.Body.String(), "<form")
				}
			})
		}
	}
	two := request(s.filled(t))
	two.Header.Add("Content-Type", "text/plain")
	require.Equal(t, 415, s.serve(two).Code)
	broken := request(nil)
	broken.Body = io.NopCloser(iotest.ErrReader(errors.New("reset by peer")))
	require.Equal(t, 400, s.serve(broken).Code)
	none := request(nil)
	none.Body = nil
	require.Equal(t, 303, s.serve(none).Code)
}

type countingReader struct {
	r io.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// The bound is the user's where there are files.
func TestMaxBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Config{MaxBody: 1 << 20})
		values := s.filled(t)
		time.Sleep(3 * time.Second)
		r := multipartRequest(t, values, map[string]string{"upload": strings.Repeat("x", 900<<10)})
		var size int64
		s.next.then = func(_ http.ResponseWriter, r *http.Request) {
			_, header, err := r.FormFile("upload")
			require.NoError(t, err)
			size = header.Size
		}
		s.serve(r)
		require.EqualValues(t, 900<<10, size)
		require.NotNil(t, r.MultipartForm, "the server deletes the files of its own request's form")
		r = multipartRequest(t, values, map[string]string{"upload": strings.Repeat("x", 1<<20)})
		require.Equal(t, 413, s.serve(r).Code)
	})
}

// An outer layer that has parsed the form leaves no body, but the fields.
func TestParsedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, Config{})
		values := s.filled(t)
		spam := s.filled(t, s.keys[0].honeypot, "x")
		time.Sleep(3 * time.Second)
		for i, r := range []*http.Request{request(values), multipartRequest(t, values, nil)} {
			require.NotNil(t, r)
			if err := r.ParseMultipartForm(1 << 20); i == 1 {
				require.NoError(t, err)
			}
			require.Equal(t, 303, s.serve(r).Code)
			require.Equal(t, i+1, s.next.count())
		}
		for _, r := range []*http.Request{request(spam), multipartRequest(t, spam, nil), multipartRequest(t, values, map[string]string{tokenField: "x"})} {
			_ = r.ParseMultipartForm(1 << 20) // an error says that it is the other kind
			require.Equal(t, 303, s.serve(r).Code)
			require.Equal(t, 2, s.next.count())
		}
		// A multipart body that is still there is read, though ParseForm was called.
		r := multipartRequest(t, values, nil)
		require.NoError(t, r.ParseForm())
		require.Equal(t, 303, s.serve(r).Code)
		require.Equal(t, 3, s.next.count())
	})
}

// Whatever a body looks like, we see the fields that net/http sees: a honeypot that the
// one reads and the other does not would be a way around it.
func FuzzFieldsAsNetHTTP(f *testing.F) {
	for _, seed := range []string{"a=1&b=2", "a=1;b=2&c=3", "%61=1&a=%zz&a=+", "&&a&=x&b=", "a=1&a=2&%zz=1", "a=%00\xff&\xff=1"} {
		f.Add(seed, false)
	}
	part := "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n"
	for _, seed := range []string{part + "--x--\r\n", part + part + "--x--", "--x\r\nContent-Disposition: form-data; name=\"a\"; filename=\"f\"\r\n\r\n1\r\n--x--\r\n",
		"--x\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=41=\r\n\r\n--x--\r\n", part, "preamble\r\n" + part + "--x--\r\nepilogue",
		"--x\r\nContent-Disposition: form-data; name*=utf-8''%61\r\n\r\n1\r\n--x--\r\n"} {
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, body string, parts bool) {
		if len(body) > 1<<16 || strings.Count(body, "&") > 1000 {
			return // net/http has a bound of its own for the number of fields
		}
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		p := posted{kind: typeURLEncoded, body: []byte(body)}
		r.Header.Set("Content-Type", typeURLEncoded)
		var want url.Values
		if parts {
			p.kind, p.boundary = typeMultipart, "x"
			r.Header.Set("Content-Type", typeMultipart+"; boundary=x")
			if r.ParseMultipartForm(1<<20) != nil {
				return // the handler can't read it either
			}
			want = r.MultipartForm.Value
		} else {
			_ = r.ParseForm() // what it could read counts
			want = r.PostForm
		}
		got := url.Values{}
		err := p.each(func(string) bool { return true }, func(x field) {
			if !x.file {
				got.Add(x.name, x.value)
			}
		})
		require.NoError(t, err)
		require.Equal(t, len(want), len(got))
		for name := range want {
			require.Equal(t, want[name], got[name])
		}
	})
}

// Splitting takes memory of the order of the body, however many fields it claims.
func TestManyFieldsAreCheap(t *testing.T) {
	s := newSite(t, Config{})
	body := strings.Repeat("a&", defaultMaxBody/2-1)
	p := posted{kind: typeURLEncoded, body: []byte(body)}
	allocations := testing.AllocsPerRun(5, func() {
		_, status := s.pick(&p)
		require.Zero(t, status)
	})
	require.Less(t, allocations, 20.0)
}

func TestPartsKeepTheirOrder(t *testing.T) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, name := range []string{"z", "a", "m"} {
		require.NoError(t, w.WriteField(name, name))
	}
	require.NoError(t, w.Close())
	p := posted{kind: typeMultipart, boundary: w.Boundary(), body: b.Bytes()}
	var names []string
	require.NoError(t, p.each(func(string) bool { return true }, func(x field) { names = append(names, x.name) }))
	require.Equal(t, []string{"z", "a", "m"}, names)
}
