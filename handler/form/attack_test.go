package form

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// One token, many hands, several instances: exactly Uses of it get through, by each kind
// of store, and the other visitors are served meanwhile.
func TestReplayFlood(t *testing.T) {
	tests := []struct {
		name      string
		instances func(t *testing.T) []*site
	}{
		{"four instances over one store", func(t *testing.T) []*site {
			store := newShared(t)
			var list []*site
			for range 4 {
				list = append(list, newSite(t, Config{MinFill: time.Nanosecond, Guard: newGuard(t, store, 1<<20)}))
			}
			return list
		}},
		{"one on its own memory", func(t *testing.T) []*site {
			return []*site{newSite(t, Config{MinFill: time.Nanosecond})}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			list := test.instances(t)
			stolen := list[0].filled(t, "name", "thief")
			made, ok := list[0].parse(stolen.Get(tokenField))
			require.True(t, ok)
			require.Eventually(t, func() bool { return time.Now().UnixMilli() > made.made }, 10*time.Second, time.Millisecond)
			var group sync.WaitGroup
			var passed, again, other, honest atomic.Int64
			for n := range 8 {
				group.Go(func() {
					for i := range 100 {
						s := list[(n+i)%len(list)]
						switch s.serve(from(request(stolen), n)).Code {
						case 303:
							passed.Add(1)
						case 409:
							again.Add(1)
						default:
							other.Add(1)
						}
						if i%20 == 0 {
							values := s.filled(t)
							before := s.next.count()
							for s.serve(from(request(values), 100+n)); s.next.count() == before; {
								s.serve(from(request(values), 100+n)) // within the same millisecond it is too fast
							}
							honest.Add(1)
						}
					}
				})
			}
			group.Wait()
			require.EqualValues(t, 5, passed.Load())
			require.EqualValues(t, 795, again.Load())
			require.Zero(t, other.Load())
			require.EqualValues(t, 40, honest.Load())
			thieves := 0
			for _, s := range list {
				for _, values := range s.next.got {
					if values.Get("name") == "thief" {
						thieves++
					}
				}
			}
			require.Equal(t, 5, thieves)
		})
	}
}

// A token that is used up is so until it is too old: no window of a store ends before.
func TestUsedUpForGood(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{}
			if guarded {
				cfg.Guard = newGuard(t, newShared(t), 1<<20)
			}
			s := newSite(t, cfg)
			values := s.filled(t)
			begin := time.Now()
			time.Sleep(1500 * time.Millisecond)
			for range 5 {
				require.Equal(t, 303, s.serve(request(values)).Code)
			}
			for time.Since(begin) < 2*time.Hour {
				require.Contains(t, s.serve(request(values)).Body.String(), "several times")
				time.Sleep(time.Minute)
			}
			require.Contains(t, s.serve(request(values)).Body.String(), "long time")
			require.Equal(t, 5, s.next.count())
		})
	}
}

// A flood of whatever a program can send, over real connections, many of which it cuts,
// leaves the honest visitor's post alone, and nothing of the flood gets through.
func TestFloodOfRubbish(t *testing.T) {
	s := newSite(t, Config{MinFill: time.Nanosecond, Guard: newGuard(t, newShared(t), 1<<20)})
	server := httptest.NewServer(s.Handler(s.next))
	defer server.Close()
	address := server.Listener.Addr().String()
	values := s.filled(t, "name", "honest")
	filled := values.Encode()
	spam := s.filled(t, s.keys[0].honeypot, "x").Encode()
	post := func(kind, body string, length int) string {
		return fmt.Sprintf("POST /contact HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", kind, length, body)
	}
	forms := []string{
		post(typeURLEncoded, spam, len(spam)),
		post(typeURLEncoded, spam, len(spam)+100),      // cut
		post(typeURLEncoded, filled[:40], len(filled)), // cut
		post(typeURLEncoded, "form-token="+strings.Repeat("A", tokenLength), 11+tokenLength),
		post(typeURLEncoded, strings.Repeat("form-token=x&", 4000), 13*4000),
		post(typeURLEncoded, strings.Repeat("x", 1000), 20<<20),
		post(typeMultipart+"; boundary=x", strings.Repeat("--x\r\n\r\n", 5000), 7*5000),
		post(typeMultipart+"; boundary="+strings.Repeat("x", 5000), "", 0),
		post("", filled, len(filled)),
		post(typeURLEncoded, "", 0),
		"POST /contact HTTP/1.1\r\nHost: x\r\nContent-Type: " + typeURLEncoded + "\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nform-token=",
	}
	var group sync.WaitGroup
	for n := range 6 {
		group.Go(func() {
			for i := range 40 {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					continue
				}
				_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
				_, _ = io.WriteString(conn, forms[(n+i)%len(forms)])
				if i%2 == 0 {
					// Cut, or else wait for the answer, if the request is whole.
					_ = conn.(*net.TCPConn).CloseWrite()
					_, _ = io.Copy(io.Discard, conn)
				}
				_ = conn.Close()
			}
		})
	}
	group.Wait()
	require.Zero(t, s.next.count())
	made, _ := s.parse(values.Get(tokenField))
	require.Eventually(t, func() bool { return time.Now().UnixMilli() > made.made }, 10*time.Second, time.Millisecond)
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, post(typeURLEncoded, filled, len(filled)))
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, 303, answer.StatusCode)
	require.Equal(t, 1, s.next.count())
	require.Equal(t, "honest", s.next.got[0].Get("name"))
}

// Whoever hangs up in the midst of the captcha wins nothing by it: the use is counted.
func TestHangUpsCount(t *testing.T) {
	s := newSite(t, Config{MinFill: time.Nanosecond})
	values := s.filled(t)
	made, _ := s.parse(values.Get(tokenField))
	require.Eventually(t, func() bool { return time.Now().UnixMilli() > made.made }, 10*time.Second, time.Millisecond)
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		s.next.then = func(http.ResponseWriter, *http.Request) { cancel() }
		s.serve(request(values).WithContext(ctx))
	}
	require.Equal(t, 5, s.next.count())
	require.Equal(t, 409, s.serve(request(values)).Code)
}

// Who sends too much hears so, also while he is still sending, and at once where he asks
// before he sends: the server does not wait for what it will not read.
func TestTooLargeIsTold(t *testing.T) {
	s := newSite(t, Config{})
	server := httptest.NewServer(s.Handler(s.next))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	for range 3 {
		resp, err := client.Post(server.URL, typeURLEncoded, strings.NewReader("a="+strings.Repeat("x", defaultMaxBody)))
		require.NoError(t, err)
		require.Equal(t, 413, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
	}
	// The server closes such a connection as one that it must not reset, which shows in
	// this field; it would keep another one open after so small a rest.
	resp, err := server.Client().Post(server.URL, typeURLEncoded, strings.NewReader("a="+strings.Repeat("x", defaultMaxBody)))
	require.NoError(t, err)
	require.True(t, resp.Close)
	require.NoError(t, resp.Body.Close())

	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", typeURLEncoded, 20<<20)
	require.NoError(t, err)
	resp, err = http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, 413, resp.StatusCode, "without 100 before it")
}
