package webhook

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// readTime is how long a sender may take over a body, where the server itself does not
// say: otherwise each of them could hold a connection, and its bytes, for as long as he
// likes.
const readTime = 10 * time.Second

// trusted is how many bytes of a body have to be there before room is made for all that
// its length announces.
const trusted = 64 << 10

// read returns the body, or the status that says why it can't be had. What a
// Content-Length claims is believed when it is too much, and costs nothing when it lies.
func (rc *Receiver) read(w http.ResponseWriter, r *http.Request) (body []byte, status int) {
	if r.ContentLength > rc.maxBody {
		return nil, http.StatusRequestEntityTooLarge
	}
	if r.Body == nil {
		return nil, 0
	}
	b := new(bytes.Buffer)
	bounded := http.MaxBytesReader(w, r.Body, rc.maxBody)
	_, err := io.CopyN(b, bounded, trusted)
	switch {
	case err == io.EOF:
		err = nil
	case err == nil:
		if r.ContentLength > trusted {
			begun := b.Bytes()
			b = bytes.NewBuffer(make([]byte, 0, r.ContentLength+bytes.MinRead)) // ReadFrom wants that much more, to find the end
			b.Write(begun)
		}
		_, err = b.ReadFrom(bounded)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return b.Bytes(), 0
	case errors.As(err, &tooLarge):
		return nil, http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout
	}
	return nil, http.StatusBadRequest
}

// hurry sets a deadline for reading, and returns how to take it away once the body is
// there: it would end the request in the middle of the handler. A body that was not read
// keeps it, because the server goes on reading some of that behind our answer.
func hurry(w http.ResponseWriter, r *http.Request) (arrived func()) {
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.ReadTimeout > 0 {
		return func() {} // its own is set, and may be shorter
	}
	// Where there is no connection there is nothing to set, as on Lambda, and nobody slow.
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(readTime)) != nil {
		return func() {}
	}
	return func() { _ = control.SetReadDeadline(time.Time{}) }
}

// withBody gives a request, which must be a copy, its body again.
func withBody(r *http.Request, body []byte) *http.Request {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return r
}
