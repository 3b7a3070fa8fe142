package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
)

func TestSixthPostIsRefused(t *testing.T) {
	p := start(t)
	tests := []struct {
		name, accept, contentType string
		sent                      int
	}{
		{"a program", "*/*", "application/problem+json", sent},
		{"a program that asks for JSON", "application/json", "application/problem+json", 200},
		{"a person", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8", sent},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := newVisitor(fmt.Sprintf("127.0.0.%d", 10+i))
			for n := range 5 {
				a := v.post(t, p, "Accept: "+test.accept)
				require.Equal(t, test.sent, a.StatusCode, "post %d: %s", n+1, a.body)
				require.Empty(t, a.Header.Get("Retry-After"))
				require.Empty(t, a.Header.Get("RateLimit"), "nor has what programs get")
			}
			for range 10 {
				a := v.post(t, p, "Accept: "+test.accept)
				require.Equal(t, 429, a.StatusCode)
				wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
				require.NoError(t, err)
				require.GreaterOrEqual(t, wait, 1)
				require.LessOrEqual(t, wait, 600)
				require.Equal(t, []string{fmt.Sprintf(`"contact-form";r=0;t=%d`, wait)}, a.Header.Values("RateLimit"))
				require.Equal(t, []string{`"contact-form";q=5;w=600`}, a.Header.Values("RateLimit-Policy"))
				require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
				require.Equal(t, test.contentType, a.Header.Get("Content-Type"))
				requireSecure(t, a.Header)
				if test.contentType != "application/problem+json" {
					require.Contains(t, a.body, "Please try again in 10 minutes.")
					require.Contains(t, a.body, `value="ada@example.com"`, "and nothing is lost")
					require.Contains(t, a.body, "Hello</textarea>")
					requireAccessible(t, a.body)
					continue
				}
				var problem struct {
					Type       string
					Status     int
					RetryAfter int      `json:"retry_after"`
					Violated   []string `json:"violated-policies"`
				}
				require.NoError(t, json.Unmarshal([]byte(a.body), &problem))
				require.Equal(t, 429, problem.Status)
				require.Equal(t, wait, problem.RetryAfter)
				require.Equal(t, []string{"contact-form"}, problem.Violated)
			}
		})
	}
}

// requireSecure checks the headers that every answer has.
func requireSecure(t testing.TB, h http.Header) {
	t.Helper()
	require.Equal(t, []string{contentSecurityPolicy(captcha{})}, h.Values("Content-Security-Policy"))
	require.Equal(t, []string{"nosniff"}, h.Values("X-Content-Type-Options"))
	require.Equal(t, []string{"same-origin"}, h.Values("Referrer-Policy"))
}

// Headers and ports are the client's own choice.
func TestForgedAddressChangesNothing(t *testing.T) {
	p := start(t)
	victim := "127.0.0.90"
	for i, name := range []string{"X-Forwarded-For", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP"} {
		attacker := newVisitor(fmt.Sprintf("127.0.0.%d", 10+i))
		passed := 0
		for n := range 20 {
			forged := fmt.Sprintf("203.0.113.%d", n)
			if n < 5 {
				forged = victim
			}
			a := attacker.post(t, p, name+": "+forged, "Forwarded: for="+forged)
			if a.StatusCode == sent {
				passed++
				continue
			}
			require.Equal(t, 429, a.StatusCode)
		}
		require.Equal(t, 5, passed, name)
	}
	require.Equal(t, sent, newVisitor(victim).post(t, p).StatusCode, "the victim is still served")
}

// On Cloud Run the last entry of X-Forwarded-For is the client, and what stands before
// it is forged.
func TestOnCloudRun(t *testing.T) {
	p := start(t, "K_SERVICE=contactform")
	v := newVisitor("127.0.0.1")
	for n := range 20 {
		a := v.post(t, p, fmt.Sprintf("X-Forwarded-For: 198.51.100.%d, 203.0.113.7", n))
		require.Equal(t, n < 5, a.StatusCode == sent, "post %d: %d", n+1, a.StatusCode)
	}
	// Two lines are one list.
	require.Equal(t, 429, v.post(t, p, "X-Forwarded-For: 198.51.100.99", "X-Forwarded-For: 203.0.113.7").StatusCode)
	require.Equal(t, sent, v.post(t, p, "X-Forwarded-For: 203.0.113.7, 203.0.113.8").StatusCode)

	line, err := bufio.NewReader(strings.NewReader(p.log.String())).ReadBytes('\n')
	require.NoError(t, err)
	var entry map[string]any
	require.NoError(t, json.Unmarshal(line, &entry))
	require.Equal(t, "INFO", entry["severity"])
	require.Equal(t, "contact form: listening", entry["message"])
	require.Equal(t, "cloudrun", entry["client_ip"])
	require.Contains(t, p.log.String(), `"severity":"WARNING"`)
	require.NotContains(t, entry["address"], "127.0.0.1", "all interfaces")
}

// Each post that the form takes counts, whatever is wrong with it.
func TestEveryPostCounts(t *testing.T) {
	old := url.Values{}
	tests := []struct {
		name string
		send func(t *testing.T, v *visitor, p *program)
	}{
		{"invalid fields", func(t *testing.T, v *visitor, p *program) {
			require.Equal(t, 422, v.do(t, "POST", p.url+"/contact", "name=x&"+hidden(), formType).StatusCode)
		}},
		{"damaged fields", func(t *testing.T, v *visitor, p *program) {
			require.Equal(t, 400, v.do(t, "POST", p.url+"/contact", "name=%zz&"+hidden(), formType).StatusCode)
		}},
		{"a token that is used up", func(t *testing.T, v *visitor, p *program) {
			require.Equal(t, 409, v.do(t, "POST", p.url+"/contact", goodFields+"&"+old.Encode(), formType).StatusCode)
		}},
	}
	p := start(t)
	var err error
	old, err = url.ParseQuery(hidden())
	require.NoError(t, err)
	for range 5 {
		require.Equal(t, sent, newVisitor("127.0.0.2").do(t, "POST", p.url+"/contact", goodFields+"&"+old.Encode(), formType).StatusCode)
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := newVisitor(fmt.Sprintf("127.0.0.%d", 10+i))
			for range 5 {
				test.send(t, v, p)
			}
			require.Equal(t, 429, v.post(t, p).StatusCode)
		})
	}
}

// What is no form, or a program's, reaches nothing that costs: it need not count, and it
// does not use up what its sender may send.
func TestRubbishReachesNothing(t *testing.T) {
	store := upstashtest.New(t)
	p := start(t, upstashEnv(store)...)
	v := newVisitor("127.0.0.10")
	post := func(body string, header ...string) int {
		return v.do(t, "POST", p.url+"/contact", body, header...).StatusCode
	}
	for range 3 {
		require.Equal(t, 415, post("{}", "Content-Type: application/json"))
		require.Equal(t, 415, post(""))
		require.Equal(t, 413, post(largeForm(maxBody+1), formType))
		require.Equal(t, sent, post(goodFields, formType), "without a token: the decoy")
		require.Equal(t, sent, post(goodForm()+"spam", formType), "in the honeypot, which comes last")
		require.NoError(t, beginPost(t, v, p, 100).Close())
	}
	require.Zero(t, store.Requests())
	require.Equal(t, sent, v.post(t, p).StatusCode)
	require.NotZero(t, store.Requests())
	require.Eventually(t, func() bool { return strings.Contains(p.log.String(), "a message came") }, patience, time.Millisecond)
	require.Equal(t, 1, strings.Count(p.log.String(), "a message came"))
}

// Whoever sends all of it and hangs up has saved nothing, and his messages came: a person
// may close the page at once.
func TestHangingUpSavesNothing(t *testing.T) {
	p := start(t)
	v := newVisitor("127.0.0.10")
	for range 20 {
		body := goodForm()
		conn := beginPost(t, v, p, len(body))
		_, err := io.WriteString(conn, body)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	came := func() int { return strings.Count(p.log.String(), "a message came") }
	require.Eventually(t, func() bool { return came() == 5 }, patience, time.Millisecond)
	require.Equal(t, 429, v.post(t, p).StatusCode)
	require.Equal(t, sent, newVisitor("127.0.0.11").post(t, p).StatusCode)
	require.Eventually(t, func() bool { return came() == 6 }, patience, time.Millisecond)
}

// beginPost sends the header of a post of size bytes and waits until the server
// asks for its body.
func beginPost(t *testing.T, v *visitor, p *program, size int) net.Conn {
	t.Helper()
	conn, err := v.Transport.(*http.Transport).DialContext(t.Context(), "tcp", "127.0.0.1:"+p.port)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // it may be closed
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = fmt.Fprintf(conn, "POST /contact HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", formType, size)
	require.NoError(t, err)
	line := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
	_, err = io.ReadFull(conn, line)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n\r\n", string(line))
	return conn
}

// Probes pass while their sender is limited, and a refusal costs nothing else.
func TestHealthIsNeverLimited(t *testing.T) {
	p := start(t)
	v := newVisitor("127.0.0.1")
	require.Equal(t, map[int]int{sent: 5, 429: 15}, v.flood(t, 20, p))
	v.Transport.(*http.Transport).DisableKeepAlives = false
	for range 1000 {
		a := v.do(t, "GET", p.url+"/healthz", "")
		require.Equal(t, 200, a.StatusCode)
		require.Empty(t, a.Header.Get("RateLimit"))
	}
	require.Equal(t, 200, v.do(t, "GET", p.url+"/healthz?x", "").StatusCode)
	require.Equal(t, 404, v.do(t, "GET", p.url+"/healthz/", "").StatusCode)
	require.Equal(t, 405, v.do(t, "POST", p.url+"/healthz", "").StatusCode)
	require.Equal(t, 200, v.do(t, "GET", p.url+"/", "").StatusCode, "the form itself is open")
	require.Equal(t, 429, v.post(t, p).StatusCode, "the offender is still limited")
}

// A page of another site must not use up its visitors' quota.
func TestOtherSitesDontCount(t *testing.T) {
	p := start(t)
	v := newVisitor("127.0.0.1")
	for range 20 {
		require.Equal(t, 403, v.post(t, p, "Sec-Fetch-Site: cross-site", "Origin: https://elsewhere.example").StatusCode)
		a := v.post(t, p, "Origin: https://elsewhere.example")
		require.Equal(t, 403, a.StatusCode)
		requireSecure(t, a.Header)
	}
	require.Equal(t, sent, v.post(t, p, "Sec-Fetch-Site: same-origin", "Origin: "+p.url).StatusCode)
	require.Equal(t, map[int]int{sent: 4, 429: 6}, v.flood(t, 10, p))
}
