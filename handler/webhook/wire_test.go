package webhook

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pipes is a listener whose connections are pipes, so that a server can live in the time
// of a test.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// serve runs a server in the bubble and returns how to reach it, and how to end it.
func serve(h http.Handler, change func(*http.Server)) (dial func() net.Conn, end func()) {
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	s := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	if change != nil {
		change(s)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = s.Serve(p)
	}()
	dial = func() net.Conn {
		near, far := net.Pipe()
		p.conns <- far
		return near
	}
	return dial, func() {
		_ = s.Close()
		<-stopped
		time.Sleep(time.Second) // net/http waits for a moment before it closes a connection
	}
}

// head writes a request up to its body.
func head(h http.Header, more ...string) string {
	var b strings.Builder
	b.WriteString("POST /hook HTTP/1.1\r\nHost: example.com\r\n")
	for name, lines := range h {
		for _, line := range lines {
			fmt.Fprintf(&b, "%s: %s\r\n", name, line)
		}
	}
	for _, line := range more {
		b.WriteString(line + "\r\n")
	}
	return b.String() + "\r\n"
}

// exchange sends text and returns the answer's status; 0 if there is none.
func exchange(c net.Conn, text string) int {
	go func() { _, _ = io.WriteString(c, text) }()
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func TestOnTheWire(t *testing.T) {
	body := strings.Repeat("x", 1000)
	right := func() http.Header { return signed(testSecret, "msg_1", body, time.Now()) }
	tests := []struct {
		name   string
		text   func() string
		status int
	}{
		{"length", func() string { return head(right(), "Content-Length: 1000") + body }, 200},
		{"chunked", func() string {
			return head(right(), "Transfer-Encoding: chunked") + "1f4\r\n" + body[:500] + "\r\n1f4\r\n" + body[:500] + "\r\n0\r\n\r\n"
		}, 200},
		{"too long a length", func() string { return head(right(), "Content-Length: 2000") + body }, 408},
		{"too short a length", func() string { return head(right(), "Content-Length: 999") + body }, 401},
		{"two lengths", func() string { return head(right(), "Content-Length: 1000", "Content-Length: 999") + body }, 400},
		{"length and chunks", func() string {
			return head(right(), "Content-Length: 1000", "Transfer-Encoding: chunked") + "0\r\n\r\n"
		}, 401},
		{"a length beyond the largest body", func() string { return head(right(), "Content-Length: 99999999999") + body }, 413},
		{"endless chunks", func() string {
			return head(right(), "Transfer-Encoding: chunked") + strings.Repeat("3e8\r\n"+body+"\r\n", 2000)
		}, 413},
		{"broken chunks", func() string { return head(right(), "Transfer-Encoding: chunked") + "zz\r\n" }, 400},
		{"nothing of a body", func() string { return head(right(), "Content-Length: 1000") }, 408},
		{"another method, and nothing of a body", func() string {
			return strings.Replace(head(right(), "Content-Length: 1000"), "POST", "PUT", 1)
		}, 405},
		{"a length beyond the largest, and nothing of a body", func() string { return head(right(), "Content-Length: 200000") }, 413},
		{"doubled header", func() string { return head(right(), "Webhook-ID: msg_1", "Content-Length: 1000") + body }, 401},
		{"folded names", func() string {
			h := right()
			return head(http.Header{"wEbHoOk-iD": h["Webhook-Id"], "WEBHOOK-TIMESTAMP": h["Webhook-Timestamp"], "webhook-signature": h["Webhook-Signature"]}, "Content-Length: 1000") + body
		}, 200},
		{"huge header", func() string {
			return head(right(), "X-Junk: "+strings.Repeat("x", 1<<19), "Content-Length: 1000") + body
		}, 200},
		{"huge signature", func() string {
			h := right()
			h["Webhook-Signature"][0] += strings.Repeat(" "+h["Webhook-Signature"][0], 10_000)
			return head(h, "Content-Length: 1000") + body
		}, 401},
		{"enormous header", func() string {
			return head(right(), "X-Junk: "+strings.Repeat("x", 2<<20), "Content-Length: 1000") + body
		}, 431},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handled := &counter{}
				dial, end := serve(receiver(t, Config{Marks: onMemory(t), MaxBody: 100_000}, handled.handle), nil)
				defer end()
				c := dial()
				defer c.Close()
				began := time.Now()
				require.Equal(t, test.status, exchange(c, test.text()))
				require.LessOrEqual(t, time.Since(began), readTime)
				if test.status == 200 {
					require.EqualValues(t, 1, handled.n.Load())
				} else {
					require.Zero(t, handled.n.Load())
				}
			})
		})
	}
}

// Senders that trickle hold nobody up, and each of them no longer than he may, whatever
// the server allows; a stricter server stays as strict.
func TestSlowBodies(t *testing.T) {
	for _, own := range []time.Duration{0, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			handled := &counter{}
			dial, end := serve(receiver(t, Config{Marks: onMemory(t)}, handled.handle), func(s *http.Server) { s.ReadTimeout = own })
			defer end()
			const slow = 50
			lasted := make(chan time.Duration, slow)
			began := time.Now()
			for range slow {
				c := dial()
				go func() {
					_, _ = io.WriteString(c, head(signed(testSecret, "msg_1", "{}", began), "Content-Length: 1000000"))
					for {
						if _, err := io.WriteString(c, "x"); err != nil {
							return
						}
						time.Sleep(100 * time.Millisecond)
					}
				}()
				go func() {
					_, _ = io.ReadAll(c)
					lasted <- time.Since(began)
					_ = c.Close()
				}()
			}
			time.Sleep(time.Second)
			for i := range 10 {
				c := dial()
				require.Equal(t, 200, exchange(c, head(signed(testSecret, fmt.Sprint("msg_", i), "{}", time.Now()), "Content-Length: 2")+"{}"))
				_ = c.Close()
			}
			want := readTime
			if own > 0 {
				want = own
			}
			for range slow {
				require.LessOrEqual(t, <-lasted, want+time.Second) // net/http waits a little before it closes
			}
			require.EqualValues(t, 10, handled.n.Load())
		})
	}
}

// The time for the body is no time for the handler, and none for the next request on the
// connection. (Where there is no body the server listens for the sender's end already.)
func TestReadDeadlineIsTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		rc := receiver(t, Config{Marks: onMemory(t)}, func(ctx context.Context, _ Delivery) error {
			time.Sleep(2 * readTime)
			return ctx.Err()
		})
		dial, end := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rc.ServeHTTP(w, r)
			if r.Context().Err() != nil {
				ended++
			}
		}), nil)
		defer end()
		c := dial()
		defer c.Close()
		for i, body := range []string{"{}", "", "{}", "", ""} {
			require.Equal(t, 200, exchange(c, head(signed(testSecret, fmt.Sprint("msg_", i), body, time.Now()), fmt.Sprint("Content-Length: ", len(body)))+body))
			time.Sleep(time.Minute)
		}
		require.Zero(t, ended, "the request went on")
	})
}

// A sender that closes the connection in the middle: of the body, and nothing was
// begun; of the handling, and it goes on.
func TestClosedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handled := &counter{}
		rc := receiver(t, Config{Marks: onMemory(t)}, func(ctx context.Context, d Delivery) error {
			select {
			case <-time.After(5 * time.Second):
				return handled.handle(ctx, d)
			case <-ctx.Done():
				return errors.New("the handler was ended")
			}
		})
		dial, end := serve(rc, nil)
		defer end()
		text := func() string { return head(signed(testSecret, "msg_1", "{}", time.Now()), "Content-Length: 2") }
		c := dial()
		_, err := io.WriteString(c, text()+"{")
		require.NoError(t, err)
		_ = c.Close()
		time.Sleep(time.Second)

		c = dial()
		_, err = io.WriteString(c, text()+"{}")
		require.NoError(t, err)
		synctest.Wait()
		_ = c.Close()
		time.Sleep(time.Second)
		c = dial()
		require.Equal(t, 409, exchange(c, text()+"{}"))
		time.Sleep(5 * time.Second)
		require.Equal(t, 200, exchange(c, text()+"{}"))
		_ = c.Close()
		require.EqualValues(t, 1, handled.n.Load())
	})
}
