package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// recorder is a Mailer that keeps what it gets, or fails.
type recorder struct {
	err  error
	got  []Message
	then func(context.Context)
}

func (m *recorder) Send(ctx context.Context, message Message) error {
	m.got = append(m.got, message)
	if m.then != nil {
		m.then(ctx)
	}
	return m.err
}

// testSite is the program's handler with a limit that stays out of the way, and no fill
// time.
func testSite(t testing.TB, mailer Mailer, change ...func(*config)) http.Handler {
	store, err := memory.New(memory.Config{})
	require.NoError(t, err)
	c := config{
		store:    store,
		clientIP: handler.Direct(),
		limit:    stores.FixedWindow(1<<20, time.Hour),
		secret:   []byte(formSecretOfTests),
		minFill:  -1,
		mailer:   mailer,
	}
	for _, f := range change {
		f(&c)
	}
	site, err := newSite(c)
	require.NoError(t, err)
	return site
}

func ask(site http.Handler, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	site.ServeHTTP(w, r)
	return w
}

// largeForm is a body of size bytes that is valid but for its size.
func largeForm(size int) string {
	head := hidden() + "&name=Ada&email=ada%40example.com&message="
	return head + strings.Repeat("x", size-len(head))
}

// send posts a body together with the hidden part of the form.
func send(site http.Handler, target, body string, header ...string) *httptest.ResponseRecorder {
	return ask(site, "POST", target, hidden()+"&"+body, header...)
}

func TestContactAccepts(t *testing.T) {
	tests := []struct {
		name, body string
		want       Message
	}{
		{"plain", goodFields, Message{"Ada", "ada@example.com", "Hello"}},
		{"blanks around", fields("  Ada ", " ada@example.com\t", "\r\n Hello \r\n"), Message{"Ada", "ada@example.com", "Hello"}},
		{"lines", fields("Ada", "ada@example.com", "a\r\n\r\nb\tc"), Message{"Ada", "ada@example.com", "a\n\nb\tc"}},
		{"other scripts", fields("Ærøskøbing 李", "ada@example.com", "שלום 👋🏽"), Message{"Ærøskøbing 李", "ada@example.com", "שלום 👋🏽"}},
		{"plus sign", fields("Ada", "ada+x@example.com", "1+1"), Message{"Ada", "ada+x@example.com", "1+1"}},
		{"markup", fields("<b>", "ada@example.com", "</textarea><script>"), Message{"<b>", "ada@example.com", "</textarea><script>"}},
		{"more fields", goodFields + "&more=1", Message{"Ada", "ada@example.com", "Hello"}},
		{"largest", largest(), Message{strings.Repeat("न", maxName), "a@" + strings.Repeat("例", maxEmail-2), strings.Repeat("न", maxText)}},
		{"lines that browsers count once", fields("Ada", "ada@example.com", "x"+strings.Repeat("\r\n", maxText-2)+"x"), Message{"Ada", "ada@example.com", "x" + strings.Repeat("\n", maxText-2) + "x"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			mailer := &recorder{}
			w := send(testSite(t, mailer), "/contact", test.body, formType+"; charset=utf-8")
			require.Equal(t, sent, w.Code, w.Body)
			require.Equal(t, []Message{test.want}, mailer.got)
			require.Equal(t, "/thanks", w.Header().Get("Location"), "so that a reload sends nothing again")
			require.Empty(t, w.Body.String())
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
			require.Equal(t, "Accept", w.Header().Get("Vary"))
			requireSecure(t, w.Header())
		})
	}
}

// largest is the longest body that the form's own bounds let one send.
func largest() string {
	return fields(strings.Repeat("न", maxName), "a@"+strings.Repeat("例", maxEmail-2), strings.Repeat("न", maxText))
}

func TestContactRefuses(t *testing.T) {
	tests := []struct {
		name, body string
		status     int
		faults     map[string]string
		kept       []string // in the page
	}{
		{"nothing", "", 422, map[string]string{"name": "enter your name", "email": "enter your e-mail", "message": "write a message"}, nil},
		{"blanks", fields(" ", "\t", "\r\n"), 422, map[string]string{"name": "enter", "email": "enter", "message": "write"}, nil},
		{"no at", fields("Ada", "ada", "Hello you"), 422, map[string]string{"email": "name@example.com"}, []string{`value="Ada"`, `value="ada"`, "\nHello you</textarea>"}},
		{"a name beside the address", fields("Ada", "Ada <ada@example.com>", "Hello"), 422, map[string]string{"email": "name@example.com"}, []string{`value="Ada &lt;ada@example.com&gt;"`}},
		{"two addresses", fields("Ada", "a@example.com,b@example.com", "Hello"), 422, map[string]string{"email": "name@example.com"}, nil},
		{"a header line in the name", fields("Ada\r\nBcc: all@example.com", "ada@example.com", "Hello"), 422, map[string]string{"name": "can't be sent"}, []string{"Hello</textarea>"}},
		{"a header line in the address", fields("Ada", "ada@example.com\nBcc: all@example.com", "Hello"), 422, map[string]string{"email": "can't be sent"}, nil},
		{"NUL", fields("Ada", "ada@example.com", "a\x00b"), 422, map[string]string{"message": "can't be sent"}, nil},
		{"no UTF-8", fields("Ad\xff", "ada@example.com", "Hello"), 422, map[string]string{"name": "UTF-8"}, []string{"value=\"Ad\uFFFD\""}},
		{"long name", fields(strings.Repeat("x", maxName+1), "ada@example.com", "Hello"), 422, map[string]string{"name": "too long"}, []string{strings.Repeat("x", maxName+1)}},
		{"long address", fields("Ada", strings.Repeat("x", maxEmail-1)+"@x", "Hello"), 422, map[string]string{"email": "too long"}, nil},
		{"long message", fields("Ada", "ada@example.com", strings.Repeat("x", maxText+1)), 422, map[string]string{"message": "too long"}, []string{strings.Repeat("x", maxText+1)}},
		{"a field twice", goodFields + "&email=b%40example.com", 422, map[string]string{"email": "more than once"}, []string{`value="Ada"`}},
		{"markup", fields(`"><script>alert(1)</script>`, `'"&<`, "</textarea><script>alert(1)</script>"), 422, map[string]string{"email": "name@example.com"},
			[]string{`value="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"`, `value="&#39;&#34;&amp;&lt;"`, "\n&lt;/textarea&gt;&lt;script&gt;alert(1)&lt;/script&gt;</textarea>"}},
		{"damaged", "name=%zz", 400, nil, nil},
		{"semicolons", "name=a;email=b", 400, nil, nil},
		{"as large as the bound", largeForm(maxBody)[len(hidden())+1:], 422, map[string]string{"message": "too long"}, nil},
		{"too large", largeForm(maxBody + 1)[len(hidden())+1:], 413, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			mailer := &recorder{}
			site := testSite(t, mailer)
			page := send(site, "/contact?name=Query&message=Query", test.body, formType)
			require.Equal(t, test.status, page.Code)
			require.Equal(t, "text/html; charset=utf-8", page.Header().Get("Content-Type"))
			require.NotContains(t, page.Body.String(), "Query", "fields in the URL are not read")
			require.NotContains(t, page.Body.String(), "<script")
			requireSecure(t, page.Header())
			requireAccessible(t, page.Body.String())
			for _, text := range test.kept {
				require.Contains(t, page.Body.String(), text)
			}

			document := send(site, "/contact", test.body, formType, "Accept: application/json, text/plain, */*")
			require.Equal(t, test.status, document.Code)
			require.Equal(t, "application/problem+json", document.Header().Get("Content-Type"))
			var problem struct {
				Title, Detail string
				Status        int
				Fields        map[string]string
			}
			require.NoError(t, json.Unmarshal(document.Body.Bytes(), &problem))
			require.Equal(t, test.status, problem.Status)
			require.Equal(t, http.StatusText(test.status), problem.Title)
			require.NotEmpty(t, problem.Detail)
			require.Len(t, problem.Fields, len(test.faults))
			for field, text := range test.faults {
				require.Contains(t, problem.Fields[field], text)
				require.Contains(t, page.Body.String(), problem.Fields[field])
			}
			require.Empty(t, mailer.got)
		})
	}
}

func TestContactMediaTypes(t *testing.T) {
	site := testSite(t, &recorder{})
	for _, kind := range []string{"", "text/plain", "application/json", "application/x-www-form-urlencoded; =", "application/x-www-form-urlencoded, text/plain"} {
		w := send(site, "/contact", goodFields, "Content-Type: "+kind)
		require.Equal(t, 415, w.Code, kind)
	}
	require.Equal(t, 400, send(site, "/contact", goodFields, "Content-Type: multipart/form-data; boundary=x").Code)
	part := "--x\r\nContent-Disposition: form-data; name=\"form-token\"\r\n\r\n" + strings.Split(strings.TrimPrefix(hidden(), "form-token="), "&")[0] + "\r\n--x--\r\n"
	require.Equal(t, 415, ask(site, "POST", "/contact", part, "Content-Type: multipart/form-data; boundary=x").Code, "this form has no files")
	tests := []struct {
		accept, want string
		status       int
	}{
		{"", "", sent},
		{"*/*", "", sent},
		{"text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8", "", sent},
		{"application/json", "application/json", 200},
		{"Application/JSON, */*;q=0.1", "application/json", 200},
	}
	for _, test := range tests {
		w := send(site, "/contact", goodFields, formType, "Accept: "+test.accept)
		require.Equal(t, test.status, w.Code)
		require.Equal(t, test.want, w.Header().Get("Content-Type"), test.accept)
	}
	require.JSONEq(t, `{"status":"received"}`, send(site, "/contact", goodFields, formType, "Accept: application/json").Body.String())
}

// A message that can't be sent is still in the form, and the cause is not shown.
func TestMailerFails(t *testing.T) {
	mailer := &recorder{err: errors.New("relay refused ada@example.com")}
	site := testSite(t, mailer)
	page := send(site, "/contact", goodFields, formType)
	require.Equal(t, 502, page.Code)
	require.Contains(t, page.Body.String(), "could not be sent")
	require.Contains(t, page.Body.String(), `value="ada@example.com"`)
	require.Contains(t, page.Body.String(), "\nHello</textarea>")
	require.NotContains(t, page.Body.String(), "relay")
	document := send(site, "/contact", goodFields, formType, "Accept: application/json")
	require.Equal(t, 502, document.Code)
	require.Contains(t, document.Body.String(), "could not be sent")
}

// What arrived whole is delivered, though the visitor has left.
func TestMailerOutlivesTheVisitor(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	mailer := &recorder{then: func(ctx context.Context) {
		leave()
		require.NoError(t, ctx.Err())
		end, ok := ctx.Deadline()
		require.True(t, ok)
		require.LessOrEqual(t, time.Until(end), mailTime)
	}}
	r := httptest.NewRequestWithContext(ctx, "POST", "/contact", strings.NewReader(goodForm()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	testSite(t, mailer).ServeHTTP(httptest.NewRecorder(), r)
	require.Len(t, mailer.got, 1)
}

func TestLogMailerKeepsNothing(t *testing.T) {
	var log strings.Builder
	mailer := logMailer{slog.New(slog.NewTextHandler(&log, nil))}
	require.NoError(t, mailer.Send(t.Context(), Message{"Ada Lovelace", "ada@example.com", "My secret"}))
	require.Contains(t, log.String(), "bytes=9")
	for _, text := range []string{"Ada", "ada@example.com", "secret"} {
		require.NotContains(t, log.String(), text)
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{goodFields, "", largest(), "name=a&name=b", "email=%22a%0D%0A%22%40b&name=%00", "message=%FF%C0%80", "name=\xdd&name", "email=a%40%5B1.2.3.4%5D"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		form, err := url.ParseQuery(body)
		if err != nil {
			return
		}
		message, faults := check(form)
		page := formHTML(message, faults, "", "")
		require.True(t, utf8.ValidString(page))
		// However it is filled in, the page has the same tags and attributes.
		empty := formHTML(Message{}, faults, "", "")
		for _, mark := range []string{"<", ">", `"`, "'"} {
			require.Equal(t, strings.Count(empty, mark), strings.Count(page, mark))
		}
		if len(faults) > 0 {
			return
		}
		require.False(t, strings.ContainsAny(message.Name+message.Email, "\r\n\x00"))
		require.LessOrEqual(t, utf8.RuneCountInString(message.Name), maxName)
		require.LessOrEqual(t, utf8.RuneCountInString(message.Email), maxEmail)
		require.LessOrEqual(t, utf8.RuneCountInString(message.Text), maxText)
		require.NotEmpty(t, message.Text)
		address, err := mail.ParseAddress(message.Email)
		require.NoError(t, err)
		require.Equal(t, message.Email, address.Address)
	})
}
