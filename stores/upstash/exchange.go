package upstash

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// maxReply bounds an answer, in bytes after whatever decoding a Transport does. Three
// slots are some sixty.
const maxReply = 64 << 10

// requests returns what makes a request without its body. No Idempotency-Key: net/http
// takes it as leave to send a request again.
//
// It is a function so that no verb of package fmt finds the token behind it.
func requests(endpoint *url.URL, token string) func(context.Context) *http.Request {
	template := &http.Request{
		Method: http.MethodPost,
		URL:    endpoint,
		Host:   endpoint.Host,
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Authorization": {"Bearer " + token},
			"Content-Type":  {"application/json"},
			"User-Agent":    {"sallyport"},
		},
	}
	return template.WithContext
}

// outgoing is a request's body. A server can't execute what it was not sent whole, so
// as long as no transport has read from it nothing was counted.
type outgoing struct {
	body []byte
	read atomic.Bool
}

func (o *outgoing) reader() (io.ReadCloser, error) { return &bodyReader{from: o}, nil }

type bodyReader struct {
	from *outgoing
	at   int
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.from.read.Store(true)
	n := copy(p, r.from.body[r.at:])
	r.at += n
	if r.at == len(r.from.body) {
		return n, io.EOF
	}
	return n, nil
}

func (r *bodyReader) Close() error { return nil }

// exchange sends the pipeline in body and fills slots with the answers, one for each
// command. It is the one attempt of its decision: nothing is ever sent twice.
//
// The deadline covers the reading of the answer too. GetBody is there for one case:
// net/http takes a connection from its pool, finds it closed before it wrote a byte,
// and takes another one.
func (s *Store) exchange(ctx context.Context, body []byte, slots []slot) error {
	caller := ctx
	if end, has := ctx.Deadline(); !has || time.Until(end) > s.timeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	out := &outgoing{body: body}
	var reused atomic.Bool
	req := s.request(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) { reused.Store(c.Reused) },
	}))
	if !s.private {
		req.Header = req.Header.Clone()
	}
	req.Body, _ = out.reader()
	req.GetBody = out.reader
	req.ContentLength = int64(len(body))

	// RoundTrip rather than an http.Client: that one follows redirects, keeps
	// cookies, and prints the address in its errors.
	resp, err := s.transport.RoundTrip(req)
	if err == nil && (resp == nil || resp.Body == nil) {
		err = errors.New("a transport without an answer")
	}
	if err != nil {
		return s.lost(caller, ctx, !out.read.Load(), reused.Load(), err)
	}
	defer resp.Body.Close()

	buf, _ := s.replies.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
		*buf = make([]byte, 0, 1024)
	}
	defer s.replies.Put(buf)
	reply, err := readAll((*buf)[:0], resp.Body)
	if cap(reply) <= 4096 {
		*buf = reply
	}
	if err == errTooLong {
		return malformed("an answer over 64 KiB")
	}
	if err != nil {
		return s.lost(caller, ctx, false, false, err)
	}
	if resp.StatusCode != http.StatusOK {
		return badStatus(resp, reply)
	}
	return parse(reply, slots)
}

var errTooLong = errors.New("too long")

// readAll appends r to buf, but no more than maxReply bytes. It reads to the end, or
// else the connection could not be used again.
func readAll(buf []byte, r io.Reader) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(4*cap(buf), maxReply+1))
			copy(grown, buf)
			buf = grown
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > maxReply:
			return buf, errTooLong
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		}
	}
}

// lost makes the error of an exchange that ended without an answer.
func (s *Store) lost(caller, ctx context.Context, unsent, reused bool, err error) error {
	over := caller.Err()
	if over == nil {
		over = ctx.Err()
	}
	if over == nil {
		return broken(err, unsent, reused)
	}
	if errors.Is(over, context.DeadlineExceeded) {
		// Whatever made this connection silent may have hit the idle ones too.
		if t, ok := s.transport.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections()
		}
	}
	text := "upstash: no answer in time"
	switch left := errors.Is(over, context.Canceled); {
	case left && unsent:
		return over
	case left:
		text = "upstash: the caller left before the answer"
	case unsent:
		text = "upstash: no connection in time"
	}
	return &fault.Error{Kind: stores.ErrUnavailable, Text: text, Cause: over, Definite: unsent}
}
