package handler

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
)

const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

// post makes a request with a body, of a known length.
func post(contentType, body string, headers ...string) *http.Request {
	return withBody("/", contentType, body, headers...)
}

func withBody(target, contentType, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.RemoteAddr = client
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// reading is what a guard with one body key made of a request.
type reading struct {
	status int // of the answer
	value  string
	there  bool   // KeyValue's second result
	body   string // that the handler got
	key    string // that the store got; "": it was not asked
}

// bodyReader runs requests through a guard with the key.
func bodyReader(t testing.TB, k Key, field string, change ...func(*Config)) func(r *http.Request) reading {
	t.Helper()
	store := newSharedStore(t)
	cfg := Config{Store: store, Policies: []Policy{{Name: "p", Limit: stores.FixedWindow(1<<20, time.Hour), Key: k}}}
	for _, f := range change {
		f(&cfg)
	}
	g := guardOf(t, cfg)
	var got reading
	h := g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Nil(t, r.Form)
		require.Nil(t, r.MultipartForm)
		b, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		got.body = string(b)
		got.value, got.there = KeyValue(r.Context(), field)
		w.WriteHeader(http.StatusNoContent)
	}))
	return func(r *http.Request) reading {
		got = reading{}
		calls := store.calls()
		got.status = serve(h, r).Code
		if store.calls() > calls {
			got.key = store.keys[len(store.keys)-1]
		}
		return got
	}
}

// A body that can't be read is refused with its reason, in the form of all refusals,
// counted by nobody, and what the caller sent is not repeated.
func TestUnreadableBodies(t *testing.T) {
	for name, tt := range map[string]struct {
		request func() *http.Request
		status  int
		says    string
	}{
		"twice":    {func() *http.Request { return post(formType, "email=marker&email=marker") }, 400, "once"},
		"too long": {func() *http.Request { return post(formType, "email="+strings.Repeat("marker", 20_000)) }, 413, "larger"},
		"no kind":  {func() *http.Request { return post("text/plain", "marker") }, 400, "Content-Type"},
	} {
		for _, accept := range []string{"*/*", "text/html"} {
			t.Run(name+" "+accept, func(t *testing.T) {
				store := newSharedStore(t)
				g := guardOf(t, Config{Store: store, Policies: []Policy{byIP("ip", 2), {Name: "mail", Limit: stores.FixedWindow(2, time.Hour), Key: ByForm("email")}}})
				for range 50 {
					r := tt.request()
					r.Header.Set("Accept", accept)
					w := serve(g.Handler(ok), r)
					require.Equal(t, tt.status, w.Code)
					require.Contains(t, w.Body.String(), tt.says)
					require.NotContains(t, w.Body.String(), "marker")
					require.Empty(t, w.Header().Values("Retry-After"))
					require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
				}
				require.Zero(t, store.calls(), "a body is read before any store is asked")
				v := g.Check(post(formType, "email=a"))
				require.True(t, v.Allowed)
				require.Equal(t, 1, v.Outcomes[0].Remaining, "and what is refused for its body charges nobody")
			})
		}
	}
}

// Reading stops behind the bound, wherever the length is or is not said, and a
// body of just the bound is read.
func TestBodyBound(t *testing.T) {
	const limit = 100
	read := bodyReader(t, ByForm("email"), "email", func(c *Config) { c.BodyLimit = limit })
	for _, known := range []bool{true, false} {
		for n, want := range map[int]int{20: 204, limit - 1: 204, limit: 204, limit + 1: 413, 20 << 20: 413} {
			source := &counting{r: io.LimitReader(formOf(n), int64(n))}
			r := post(formType, "")
			r.Body, r.ContentLength = io.NopCloser(source), -1
			if known {
				r.ContentLength = int64(n)
			}
			got := read(r)
			require.Equal(t, want, got.status, "%d bytes", n)
			if want == 204 {
				require.Len(t, got.body, n)
				require.Equal(t, "a", got.value)
				continue
			}
			require.LessOrEqual(t, source.n, limit+1)
			if known {
				require.Zero(t, source.n, "what says that it is too long is not read at all")
			}
			rest, err := io.ReadAll(io.LimitReader(r.Body, limit+10))
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(string(rest), "email=a&b=xxx"), "Check puts an equal body in its place")
			require.Len(t, rest, min(n, limit+10))
		}
	}
}

// What the query alone makes ambiguous, and a kind of body that no key reads, is
// refused without reading a byte.
func TestBodiesThatNeedNoReading(t *testing.T) {
	read := bodyReader(t, ByForm("email"), "email")
	for _, r := range []*http.Request{
		withBody("/?email=a&email=b", formType, "c=d"), post("text/plain", "email=a"), post(formType, "email=a", "Content-Encoding", "gzip"),
	} {
		r.Body = io.NopCloser(readFunc(func([]byte) (int, error) {
			t.Error("read")
			return 0, io.EOF
		}))
		require.Equal(t, 400, read(r).status)
	}
}

// formOf is a form that never ends.
func formOf(int) io.Reader {
	return io.MultiReader(strings.NewReader("email=a&b="), repeat('x'))
}

type repeat byte

func (c repeat) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(c)
	}
	return len(b), nil
}

type counting struct {
	r io.Reader
	n int
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += n
	return n, err
}

// What ends before its time, or an outer layer's bound, is refused, and the handler
// does not run on a part of a body.
func TestBodiesThatBreakOff(t *testing.T) {
	read := bodyReader(t, ByForm("email"), "email")
	for name, tt := range map[string]struct {
		err    error
		status int
	}{
		"cut":         {io.ErrUnexpectedEOF, 400},
		"bad base64":  {errors.New("illegal base64 data at input byte 7"), 400},
		"outer bound": {&http.MaxBytesError{Limit: 10}, 413},
	} {
		t.Run(name, func(t *testing.T) {
			r := post(formType, "")
			r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("email=a"), broken{tt.err})), -1
			got := read(r)
			require.Equal(t, tt.status, got.status)
			require.Empty(t, got.key)
		})
	}
	// The same at the very bound.
	atBound := bodyReader(t, ByForm("email"), "email", func(c *Config) { c.BodyLimit = 7 })
	r := post(formType, "")
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("email=a"), broken{io.ErrUnexpectedEOF})), -1
	require.Equal(t, 400, atBound(r).status)
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// A caller who is gone is no caller with a bad body.
func TestCallerGoneWhileReading(t *testing.T) {
	store := newSharedStore(t)
	g := guardOf(t, Config{Store: store, Policies: []Policy{{Name: "p", Limit: stores.FixedWindow(5, time.Hour), Key: ByForm("email")}}})
	ctx, cancel := context.WithCancel(t.Context())
	r := post(formType, "").WithContext(ctx)
	r.Body, r.ContentLength = io.NopCloser(readFunc(func([]byte) (int, error) {
		cancel()
		return 0, io.ErrUnexpectedEOF
	})), -1
	v := g.Check(r)
	require.Equal(t, statusClientClosedRequest, v.Status)
	require.ErrorIs(t, v.Err, context.Canceled)
	r = post(formType, "email=a").WithContext(ctx)
	r.Body = io.NopCloser(readFunc(func([]byte) (int, error) {
		t.Error("read for nobody")
		return 0, io.EOF
	}))
	require.Equal(t, statusClientClosedRequest, g.Check(r).Status)
	require.Zero(t, store.calls())
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// A body that an outer layer has eaten is no absent field: his budget would be the
// address's, and no limit on the account.
func TestEatenBodies(t *testing.T) {
	log := new(logBuffer)
	for _, k := range []Key{ByForm("email"), ByJSON("email")} {
		read := bodyReader(t, k, "email", func(c *Config) { c.Logger = log.logger() })
		r := post(formType, "email=a")
		if k.String() == "json:email" {
			r = post(jsonType, `{"email":"a"}`)
		}
		_, err := io.Copy(io.Discard, r.Body)
		require.NoError(t, err)
		require.Equal(t, 400, read(r).status)
		require.Contains(t, log.String(), "outside of what consumes the body")
	}
}

// Where an outer layer has parsed the form, the values are those that it found.
func TestParsedForms(t *testing.T) {
	g := onMemory(t, Policy{Name: "p", Limit: stores.FixedWindow(1, time.Hour), Key: ByForm("email")})
	parsed := func(r *http.Request) *http.Request {
		require.NoError(t, r.ParseMultipartForm(1<<20))
		return r
	}
	plain := func(r *http.Request) *http.Request {
		require.NoError(t, r.ParseForm())
		return r
	}
	streamed := func(r *http.Request) *http.Request {
		_, err := r.MultipartReader()
		require.NoError(t, err)
		return r
	}
	multi := func(parts ...string) *http.Request {
		body, kind := multipartOf(t, parts...)
		return post(kind, body)
	}
	require.True(t, g.Check(post(formType, "email=a")).Allowed)
	for name, tt := range map[string]struct {
		r    *http.Request
		want int
	}{
		"form":                    {plain(post(formType, "email=a")), 429},
		"form, twice":             {plain(post(formType, "email=a&EMAIL=b")), 400},
		"form and query":          {plain(withBody("/?email=b", formType, "email=a")), 400},
		"multipart":               {parsed(multi("email", "a")), 429},
		"multipart, twice":        {parsed(multi("email", "a", "email[]", "b")), 400},
		"multipart, a file":       {parsed(multi("email", "a", "@Email", "b")), 400},
		"multipart, half parsed":  {plain(multi("email", "a")), 429},
		"multipart, being read":   {streamed(multi("email", "a")), 400},
		"form by another method":  {plain(method("DELETE", post(formType, "email=a"))), 429},
		"multipart, other method": {plain(method("DELETE", multi("email", "a"))), 429},
	} {
		require.Equal(t, tt.want, g.Check(tt.r).Status, name)
	}
	v := g.Check(plain(post(formType, "b=a")))
	require.True(t, v.Allowed, "absent: the address")
}

func method(name string, r *http.Request) *http.Request {
	r.Method = name
	return r
}

// A caller who sends drop by drop holds his own connection, and neither a call to
// the store nor one of the few that may run at once.
func TestSlowBodyHoldsNothing(t *testing.T) {
	store := newSharedStore(t)
	g := guardOf(t, Config{
		Store: store, Failover: failover.Config{MaxInFlight: 1},
		Policies: []Policy{{Name: "p", Limit: stores.FixedWindow(5, time.Hour), Key: FirstOf(ByForm("email"), ByJSON("email"))}},
	})
	const slow = 20
	reading, drop, done := make(chan struct{}, slow), make(chan struct{}), make(chan Verdict)
	for range slow {
		r := post(formType, "")
		rest := strings.NewReader("email=slow")
		first := true
		r.Body, r.ContentLength = io.NopCloser(readFunc(func(b []byte) (int, error) {
			if first {
				first = false
				reading <- struct{}{}
				<-drop
			}
			return rest.Read(b[:1])
		})), -1
		go func() { done <- g.Check(r) }()
	}
	for range slow {
		<-reading
	}
	require.Zero(t, store.calls())
	for i := range 5 {
		v := g.Check(post(formType, "email=honest"))
		require.True(t, v.Allowed)
		require.Equal(t, stores.Shared, v.Outcomes[0].Source, "%d", i)
	}
	close(drop)
	allowed := 0
	for range slow {
		if v := <-done; v.Allowed {
			allowed++
		}
	}
	require.Equal(t, 5, allowed, "the slow ones are one identity")
}

// Over the wire, with a length, in chunks, after "Expect: 100-continue", and
// with the handler's own reading of the form behind it.
func TestBodiesOnTheWire(t *testing.T) {
	errs := new(logBuffer)
	g := onMemory(t, Policy{Name: "p", Limit: stores.FixedWindow(1000, time.Hour), Key: ByForm("email")})
	s := httptest.NewUnstartedServer(g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/form" {
			value, _ := KeyValue(r.Context(), "email")
			fmt.Fprint(w, r.FormValue("email") == value, " ", value)
			return
		}
		b, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%x %v", sha256.Sum256(b), err)
	})))
	s.Config.ErrorLog = log.New(errs, "", 0)
	s.Start()
	defer s.Close()
	body := []byte("email=a%40b&junk=" + strings.Repeat("%00+", 1000))
	sum := fmt.Sprintf("%x <nil>", sha256.Sum256(body))
	send := func(path string, body io.Reader, headers ...string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, body)
		require.NoError(t, err)
		r.Header.Set("Content-Type", formType)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		response, err := s.Client().Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		b, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(b)
	}
	for name, reader := range map[string]func() io.Reader{
		"length": func() io.Reader { return bytes.NewReader(body) },
		"chunks": func() io.Reader { return io.MultiReader(bytes.NewReader(body)) },
	} {
		for _, headers := range [][]string{nil, {"Expect", "100-continue"}} {
			status, got := send("/", reader(), headers...)
			require.Equal(t, 200, status, name)
			require.Equal(t, sum, got, name)
			_, got = send("/form", reader(), headers...)
			require.Equal(t, "true a@b", got, name)
		}
	}
	status, got := send("/", io.MultiReader(strings.NewReader("email=a&b="), io.LimitReader(repeat('x'), defaultBodyLimit)))
	require.Equal(t, 413, status)
	require.Contains(t, got, "larger")
	require.Empty(t, errs.String())

	// Who announces too much is not asked to send it, others are.
	for length, want := range map[int]string{20 << 20: "HTTP/1.1 413 ", 7: "HTTP/1.1 100 "} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		require.NoError(t, err)
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", formType, length)
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(line, want), line)
		require.NoError(t, conn.Close())
	}
}

// Floods of made-up and of broken bodies: the offender's mailbox stays refused, the
// honest visitor is served.
func TestBodyFlood(t *testing.T) {
	bothPaths(t, func(t *testing.T, store stores.Store) {
		g := guardOf(t, Config{Store: store, Policies: []Policy{{Name: "mail", Limit: stores.FixedWindow(2, time.Hour), Key: FirstOf(ByForm("email").Email(), ByJSON("email").Email())}}})
		spellings := []func() *http.Request{
			func() *http.Request { return post(formType, "email=victim%40example.org") },
			func() *http.Request { return post(formType, "EMAIL=Victim%40Example.org+") },
			func() *http.Request { return withBody("/?email=%20victim@example.org", "", "") },
			func() *http.Request {
				return post(formType+"; charset=UTF-8", "a=b&email%5B%5D=victim%40example.org&&")
			},
			func() *http.Request {
				body, kind := multipartOf(t, "email", "VICTIM@example.org\t")
				return post(kind, body)
			},
		}
		passed := 0
		for i := range 300 {
			if g.Check(spellings[i%len(spellings)]()).Allowed {
				passed++
			}
			require.NotZero(t, g.Check(post(formType, "email=x&email=victim%40example.org")).Status)
			require.NotZero(t, g.Check(post(formType, "email=victim%40example.org%00"+strconv.Itoa(i))).Status)
			g.Check(post(formType, "email=made-up-"+strconv.Itoa(i)))
		}
		require.Equal(t, 2, passed, "one mailbox, one budget")
		json := 0
		for i := range 20 {
			body := []string{`{"email":"victim@example.org"}`, `{"Email":"Victim@example.org"}`, `{"\u0065mail":" victim@\u0065xample.org","a":[{"email":1}]}`}[i%3]
			if g.Check(post(jsonType, body)).Allowed {
				json++
			}
		}
		require.Equal(t, 2, json, "a field of a form and a member of JSON are two identities")
		require.True(t, g.Check(post(formType, "email=honest%40example.org")).Allowed)
	})
}
