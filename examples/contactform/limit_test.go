package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSixthPostIsRefused(t *testing.T) {
	p := start(t)
	tests := []struct {
		name, accept, contentType string
	}{
		{"a program", "*/*", "application/problem+json"},
		{"a program that asks for JSON", "application/json", "application/problem+json"},
		{"a person", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8"},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := newVisitor(fmt.Sprintf("127.0.0.%d", 10+i))
			for n := range 5 {
				a := v.post(t, p, "Accept: "+test.accept)
				require.Equal(t, 200, a.StatusCode, "post %d: %s", n+1, a.body)
				require.Empty(t, a.Header.Get("Retry-After"))
				require.Contains(t, a.Header.Get("RateLimit"), fmt.Sprintf(`"contact-form";r=%d;t=`, 4-n))
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
					require.Contains(t, a.body, "go back")
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
	require.Equal(t, []string{contentSecurityPolicy}, h.Values("Content-Security-Policy"))
	require.Equal(t, []string{"nosniff"}, h.Values("X-Content-Type-Options"))
	require.Equal(t, []string{"same-origin"}, h.Values("Referrer-Policy"))
}

// B01 and B04: headers and ports are the client's own choice.
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
			if a.StatusCode == 200 {
				passed++
				continue
			}
			require.Equal(t, 429, a.StatusCode)
		}
		require.Equal(t, 5, passed, name)
	}
	require.Equal(t, 200, newVisitor(victim).post(t, p).StatusCode, "the victim is still served")
}

// On Cloud Run the last entry of X-Forwarded-For is the client, and what stands before
// it is forged.
func TestOnCloudRun(t *testing.T) {
	p := start(t, "K_SERVICE=contactform")
	v := newVisitor("127.0.0.1")
	for n := range 20 {
		a := v.post(t, p, fmt.Sprintf("X-Forwarded-For: 198.51.100.%d, 203.0.113.7", n))
		require.Equal(t, n < 5, a.StatusCode == 200, "post %d: %d", n+1, a.StatusCode)
	}
	// Two lines are one list.
	require.Equal(t, 429, v.post(t, p, "X-Forwarded-For: 198.51.100.99", "X-Forwarded-For: 203.0.113.7").StatusCode)
	require.Equal(t, 200, v.post(t, p, "X-Forwarded-For: 203.0.113.7, 203.0.113.8").StatusCode)

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

// Each POST counts, whatever is in it, and a caller who hangs up after it was counted
// has not saved a hit.
func TestEveryPostCounts(t *testing.T) {
	tests := []struct {
		name string
		send func(t *testing.T, v *visitor, p *program)
	}{
		{"invalid fields", func(t *testing.T, v *visitor, p *program) {
			require.Equal(t, 422, v.do(t, "POST", p.url+"/contact", "name=x", formType).StatusCode)
		}},
		{"another content type", func(t *testing.T, v *visitor, p *program) {
			require.Equal(t, 415, v.do(t, "POST", p.url+"/contact", "{}", "Content-Type: application/json").StatusCode)
		}},
		{"no body", func(t *testing.T, v *visitor, p *program) {
			require.Equal(t, 415, v.do(t, "POST", p.url+"/contact", "").StatusCode)
		}},
		{"too large a body", func(t *testing.T, v *visitor, p *program) {
			require.Equal(t, 413, v.do(t, "POST", p.url+"/contact", largeForm(maxBody+1), formType).StatusCode)
		}},
		{"hanging up", func(t *testing.T, v *visitor, p *program) {
			beginPost(t, v, p, 100).Close()
		}},
	}
	p := start(t)
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

// beginPost sends the header of a post of size bytes and waits until the server
// asks for its body, which it does after counting.
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

// B23: probes pass while their sender is limited, and a refusal costs nothing else.
func TestHealthIsNeverLimited(t *testing.T) {
	p := start(t)
	v := newVisitor("127.0.0.1")
	require.Equal(t, map[int]int{200: 5, 429: 15}, v.flood(t, 20, p))
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
	require.Equal(t, 200, v.post(t, p, "Sec-Fetch-Site: same-origin", "Origin: "+p.url).StatusCode)
	require.Equal(t, map[int]int{200: 4, 429: 6}, v.flood(t, 10, p))
}
