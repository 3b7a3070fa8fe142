package upstashtest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// send writes bytes and tells whether the client is still there.
func (x *Exchange) send(format string, args ...any) bool {
	_, err := fmt.Fprintf(x.Wire, format, args...)
	return err == nil
}

// answer writes a whole answer with its length.
func (x *Exchange) answer(code int, header, body string) bool {
	return x.send("HTTP/1.1 %d %s\r\nContent-Length: %d\r\n%s\r\n%s", code, http.StatusText(code), len(body), header, body)
}

const asJSON = "Content-Type: application/json\r\n"

// wait ends when the client hangs up or the server is stopped.
func (x *Exchange) wait() { _, _ = io.Copy(io.Discard, x.Wire) }

// Good works and answers.
func Good() Fault {
	return func(x *Exchange) bool { return x.answer(200, asJSON, x.Apply()) }
}

// Late works at once and answers after d, or never if the server is stopped before.
func Late(d time.Duration) Fault {
	return func(x *Exchange) bool {
		body := x.Apply()
		return x.pause(d) && x.answer(200, asJSON, body)
	}
}

// pause waits for d, or for the end of the server, which it tells by false.
func (x *Exchange) pause(d time.Duration) bool {
	select {
	case <-x.server.stopped:
		return false
	case <-time.After(d):
		return true
	}
}

// Reply does no work and gives this answer.
func Reply(code int, contentType, body string) Fault {
	return func(x *Exchange) bool { return x.answer(code, "Content-Type: "+contentType+"\r\n", body) }
}

// ReplyWith is Reply with header lines of its own.
func ReplyWith(code int, header http.Header, body string) Fault {
	var lines strings.Builder
	_ = header.Write(&lines)
	return func(x *Exchange) bool { return x.answer(code, lines.String(), body) }
}

// Lie works and then answers 200 with this body.
func Lie(body string) Fault {
	return func(x *Exchange) bool { x.Apply(); return x.answer(200, asJSON, body) }
}

// Lost works and then does as f.
func Lost(f Fault) Fault {
	return func(x *Exchange) bool { x.Apply(); return f(x) }
}

// Hang never answers.
func Hang() Fault {
	return func(x *Exchange) bool { x.wait(); return false }
}

// HangOnReuse answers the first request of each connection and no later one, as a
// connection does whose other end vanished while it was idle.
func HangOnReuse() Fault {
	return func(x *Exchange) bool {
		if x.OnConn > 1 {
			x.wait()
			return false
		}
		return x.answer(200, asJSON, x.Apply())
	}
}

// CutOnReuse answers the first request of each connection and cuts it at the next.
func CutOnReuse() Fault {
	return func(x *Exchange) bool { return x.OnConn == 1 && x.answer(200, asJSON, x.Apply()) }
}

// Close ends the connection without a word.
func Close() Fault { return func(*Exchange) bool { return false } }

// Reset ends the connection with a TCP reset.
func Reset() Fault {
	return func(x *Exchange) bool {
		if tcp, ok := x.Wire.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return false
	}
}

// HeaderThenHang works, sends the header of the answer, and no body.
func HeaderThenHang() Fault {
	return func(x *Exchange) bool {
		body := x.Apply()
		x.send("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n", asJSON, len(body))
		x.wait()
		return false
	}
}

// HalfBody works, sends half of the answer, and then does as f.
func HalfBody(f Fault) Fault {
	return func(x *Exchange) bool {
		body := x.Apply()
		x.send("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", asJSON, len(body), body[:len(body)/2])
		return f(x)
	}
}

// Trickle works and sends the answer byte by byte, pausing before each, without end:
// blanks follow the answer.
func Trickle(pause time.Duration) Fault {
	return func(x *Exchange) bool {
		body := x.Apply()
		x.send("HTTP/1.1 200 OK\r\n%sTransfer-Encoding: chunked\r\n\r\n", asJSON)
		for i := 0; ; i++ {
			b := " "
			if i < len(body) {
				b = body[i : i+1]
			}
			if !x.send("1\r\n%s\r\n", b) {
				return false
			}
			if !x.pause(pause) {
				return false
			}
		}
	}
}

// EndlessChunk works and sends the whole answer in chunks, but never the last one.
func EndlessChunk() Fault {
	return func(x *Exchange) bool {
		body := x.Apply()
		x.send("HTTP/1.1 200 OK\r\n%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", asJSON, len(body), body)
		x.wait()
		return false
	}
}

// HTTP10 works and answers by HTTP/1.0: no length, the end of the connection ends it.
func HTTP10() Fault {
	return func(x *Exchange) bool {
		x.send("HTTP/1.0 200 OK\r\n%s\r\n%s", asJSON, x.Apply())
		return false
	}
}

// Huge sends n bytes of blanks, and then an answer.
func Huge(n int) Fault {
	return func(x *Exchange) bool {
		return x.answer(200, asJSON, strings.Repeat(" ", n)+x.Apply())
	}
}

// Zipped works and answers in gzip, unasked: with pad blanks before the answer, and
// cut after the first keep bytes if keep is above 0.
func Zipped(pad, keep int) Fault {
	return func(x *Exchange) bool {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, strings.Repeat(" ", pad)+x.Apply())
		_ = z.Close()
		body := b.String()
		if keep > 0 {
			body = body[:keep]
		}
		return x.answer(200, asJSON+"Content-Encoding: gzip\r\n", body)
	}
}

// Redirect points elsewhere.
func Redirect(code int, location string) Fault {
	return func(x *Exchange) bool { return x.answer(code, "Location: "+location+"\r\n", "") }
}
