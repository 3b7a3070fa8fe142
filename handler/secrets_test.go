package handler

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// What identifies a person or opens a door is in no log, metric, store, header,
// body or error, whatever becomes of the request.
func TestNoSecretLeaks(t *testing.T) {
	const (
		email   = "marker.person@example.org"
		apiKey  = "marker-api-key"
		token   = "marker-token-eyJhbGciOi"
		address = "203.0.113.77"
		cookie  = "marker-cookie"
		claim   = "marker-claim-sub"
		secret  = "marker-key-secret-0123456789"
	)
	markers := []string{email, apiKey, token, address, cookie, claim, secret}
	bothPaths(t, func(t *testing.T, store stores.Store) {
		log, said := new(logBuffer), new(strings.Builder)
		boom := func(value func(*http.Request) any) func(*http.Request) string {
			return func(r *http.Request) string { panic(value(r)) }
		}
		policies := []Policy{
			mail("ip", ByIP()), mail("cookie", ByCookie("sid")), mail("key", ByHeader("X-Api-Key")), mail("bearer", ByHeader("Authorization")),
			mail("mail", ByHeader("X-Email").Email()), mail("claim", ByClaim("sub")),
			mail("form", FirstOf(ByForm("email").Email(), ByJSON("email").Email())), mail("token", FirstOf(ByForm("token"), ByJSON("token"))),
			mail("panic", ByFunc(boom(func(r *http.Request) any { return r.Header.Get("X-Email") }))),
			mail("panic2", ByFunc(boom(func(r *http.Request) any { return errors.New(r.Header.Get("X-Api-Key")) }))),
			mail("panic3", ByFunc(boom(func(r *http.Request) any { return r }))),
			mail("job", Manual()),
		}
		policies[4].LimitBy = func(r *http.Request) stores.Limit { return stores.Limit{Quota: -1} }
		policies[6].Cost = func(r *http.Request) int { panic(r.Header) }
		for i := range policies {
			policies[i].ShowQuota = true
		}
		g := guardOf(t, Config{
			Store: store, Policies: policies, KeySecret: []byte(secret), Logger: log.logger(), BodyLimit: 1000,
			Observe: func(_ context.Context, v Verdict) {
				fmt.Fprintf(said, "%+v %#v %v %s\n", v, v.Outcomes, v.Err, v.RetryAfter())
				b, err := json.Marshal(v.Outcomes)
				fmt.Fprintf(said, "%s %v\n", b, err)
				log.logger().Info("a visitor", "verdict", v)
			},
		})
		marked := func(contentType, body string, headers ...string) *http.Request {
			r := withBody("/?q="+url.QueryEscape(email), contentType, body, append(headers,
				"X-Email", email, "X-Api-Key", apiKey, "Authorization", "Bearer "+token, "Cookie", "sid="+cookie)...)
			r.RemoteAddr = address + ":80"
			return claiming(r, "sub", claim)
		}
		form := "email=" + url.QueryEscape(email) + "&token=" + token
		object := `{"email":"` + email + `","token":"` + token + `"}`
		statuses := map[int]bool{}
		ask := func(r *http.Request) {
			w := serve(g.Handler(ok), r)
			statuses[w.Code] = true
			fmt.Fprintln(said, w.Result().Header, w.Body)
		}
		for _, accept := range []string{"*/*", "text/html"} {
			for range 3 {
				ask(marked(formType, form, "Accept", accept))
				ask(marked(jsonType, object, "Accept", accept))
			}
			ask(marked(formType, form+"&"+form, "Accept", accept))
			ask(marked(jsonType, object+object, "Accept", accept))
			ask(marked("text/plain", email+apiKey, "Accept", accept))
			ask(marked(formType, form+"&"+strings.Repeat(token, 100), "Accept", accept))
			r := marked(formType, form, "Accept", accept)
			r.Body = io.NopCloser(broken{errors.New(email + " " + token)})
			ask(r)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			ask(marked(formType, form, "Accept", accept).WithContext(ctx))
		}
		require.Equal(t, map[int]bool{200: true, 400: true, 413: true, 429: true, 499: true}, statuses)
		for _, call := range [][]string{{"ip", email}, {"key"}, {"mail", " "}, {"unknown", email}, {"ip", address, apiKey}, {"form", email}, {"form", email, ""}} {
			_, err := g.Take(t.Context(), call[0], 1, call[1:]...)
			fmt.Fprintln(said, err)
			fmt.Fprintln(said, g.Reset(t.Context(), call[0], call[1:]...))
		}
		if s, shared := store.(*sharedStore); shared {
			for _, fail := range []error{errStrange, stores.ErrInvalid, stores.ErrThrottled, stores.ErrMisconfigured} {
				s.failWith(func(context.Context, stores.Hit) error { return fail })
				r := marked(formType, strings.Replace(form, "marker.person", "another.marker.person", 1))
				r.RemoteAddr = "203.0.113.78:80"
				ask(r)
			}
			require.NotEmpty(t, s.keys)
			fmt.Fprintln(said, strings.Join(s.keys, "\n"))
		}
		fmt.Fprintf(said, "%v %+v %s\n", g.ClientAddr(get("")), g.Stats(), policies[6].Key)
		all := strings.ToLower(log.String() + said.String())
		require.Contains(t, log.String(), "panicked")
		for _, marker := range markers {
			for _, form := range writings(marker) {
				require.NotContains(t, all, strings.ToLower(form))
			}
		}
	})
}

// writings are the forms in which a marker might hide in a text.
func writings(marker string) []string {
	forms := []string{marker, url.QueryEscape(marker), url.PathEscape(marker), hex.EncodeToString([]byte(marker)), fmt.Sprintf("% x", marker), fmt.Sprint([]byte(marker))}
	escaped := ""
	for _, c := range []byte(marker) {
		escaped += fmt.Sprintf("%%%02x", c)
	}
	forms = append(forms, escaped)
	for before := range 3 { // wherever in a longer text it stands
		padded := []byte(strings.Repeat("x", before) + marker + "xxx")
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			forms = append(forms, e.EncodeToString(padded)[4:4*(len(padded)/3-1)])
		}
	}
	return forms
}

// The search finds what it looks for.
func TestWritings(t *testing.T) {
	const marker = "marker.person@example.org"
	for i, text := range []string{
		marker, "q=" + url.QueryEscape(marker), hex.EncodeToString([]byte("a" + marker)), base64.StdEncoding.EncodeToString([]byte(marker)),
		base64.URLEncoding.EncodeToString([]byte("a" + marker + "b")), base64.RawStdEncoding.EncodeToString([]byte("ab" + marker)),
		fmt.Sprint([]byte(marker)),
	} {
		found := false
		for _, form := range writings(marker) {
			found = found || strings.Contains(strings.ToLower(text), strings.ToLower(form))
		}
		require.True(t, found, i)
	}
}

// Nothing is kept of one request for another: what is pooled is empty.
func TestPoolKeepsNothing(t *testing.T) {
	g := onMemory(t, Policy{Name: "p", Limit: stores.FixedWindow(5, time.Hour), Key: ByForm("email")})
	q := newInquiry(g, post(formType, "email=marker"))
	require.Zero(t, g.ask(q, &q.detail).Status)
	require.NotEmpty(t, q.values)
	values := q.values[:1]
	q.release()
	require.Equal(t, content{}, q.body)
	require.Equal(t, fieldValue{}, values[0])
	require.Nil(t, q.r)
	for _, r := range []*http.Request{post(formType, "email=a&email=b"), withBody("/?email=a&email=b", formType, "c=d"), post("text/plain", "email=a")} {
		q = newInquiry(g, r)
		require.Equal(t, 400, g.ask(q, &q.detail).Status)
		q.release()
		require.Zero(t, q.refusal)
		require.False(t, q.misfits)
		require.False(t, q.body.read)
	}
}

// The refusal of one request is not the next one's, whoever sends them.
func TestRefusedBodiesHarmNobody(t *testing.T) {
	g := onMemory(t, Policy{Name: "p", Limit: limitForFuzz, Key: ByForm("email")})
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 500 {
				g.Check(withBody("/?email=a&email=b", formType, "c=d"))
				g.Check(post(formType, "email=a&email=b"))
				g.Check(post("text/plain", "email=a"))
			}
		}()
	}
	for i := range 2000 {
		v := g.Check([]*http.Request{get(client), post(formType, "email=honest")}[i%2])
		require.Zero(t, v.Status)
	}
	for range 4 {
		<-done
	}
}
