package handler

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
)

// media is what a request's body is, as far as keys read it.
type media uint8

const (
	mediaNone      media = iota // no body, or an empty one
	mediaForm                   // application/x-www-form-urlencoded
	mediaMultipart              // multipart/form-data
	mediaJSON                   // application/json, or a type that ends in +json (RFC 6839)
	mediaOther                  // any other, or a Content-Type that is not clear
)

// content is a request's body as keys see it: read once, whole, before any store is
// asked, so that a caller who sends slowly holds nothing but his own connection.
type content struct {
	read     bool
	status   int // 400 or 413 if it could not be read
	media    media
	boundary string
	data     []byte
	parsed   bool // an outer layer has made r.PostForm of it

	checked, isJSON bool // of validJSON
}

// content reads the body if that has not been done.
func (q *inquiry) content() *content {
	if c := &q.body; !c.read {
		c.read = true
		c.status = c.load(q)
	}
	return &q.body
}

func (c *content) load(q *inquiry) (status int) {
	r := q.r
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return 0
	}
	for _, encoding := range r.Header["Content-Encoding"] {
		if encoding = trimField(encoding); encoding != "" && !strings.EqualFold(encoding, "identity") {
			return http.StatusBadRequest
		}
	}
	c.media, c.boundary = mediaOf(r.Header["Content-Type"])
	switch {
	case c.media == mediaForm && r.PostForm != nil && hasPostForm(r.Method):
		c.parsed = true
		return 0
	case c.media == mediaMultipart && r.MultipartForm != nil:
		// Without a PostForm somebody streams it, and what is left of it can't be read.
		c.parsed = r.PostForm != nil
		return 0
	case c.media == mediaOther && r.ContentLength > 0:
		return 0 // which no key will read
	case r.ContentLength > q.guard.bodyLimit:
		return http.StatusRequestEntityTooLarge
	case r.Context().Err() != nil:
		return http.StatusBadRequest
	}
	status = c.readAll(r, q.guard.bodyLimit)
	if status == 0 && len(c.data) == 0 {
		c.media = mediaNone
		if r.ContentLength > 0 {
			q.guard.reports.consumed.note(q.guard.logger, "requests whose body was read before the guard could are refused: put the guard outside of what consumes the body")
			return http.StatusBadRequest
		}
	}
	return status
}

// readAll reads the body and puts an equal one in its place. The buffer grows with
// what arrives, not with what the caller says will: an announcement costs nothing.
func (c *content) readAll(r *http.Request, limit int64) (status int) {
	original := r.Body
	data, err := io.ReadAll(&io.LimitedReader{R: original, N: limit})
	if err == nil && int64(len(data)) == limit {
		var next [1]byte
		var n int
		if n, err = io.ReadFull(original, next[:]); n > 0 {
			data, status = append(data, next[0]), http.StatusRequestEntityTooLarge
		} else if err == io.EOF {
			err = nil
		}
	}
	if err != nil && status == 0 {
		status = http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
	}
	c.data = data
	r.Body = replay{io.MultiReader(bytes.NewReader(data), original), original}
	return status
}

// replay is a body of which a part has been read.
type replay struct {
	io.Reader
	io.Closer
}

// hasPostForm tells whether Request.ParseForm reads the bodies of a method.
func hasPostForm(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// mediaOf reads Content-Type. Several lines, a line that can't be read, and a
// charset other than the one that servers in Go read (they ignore what it says), and
// an extended parameter are mediaOther: two readers might make two values of the body.
func mediaOf(lines []string) (kind media, boundary string) {
	if len(lines) != 1 {
		return mediaOther, ""
	}
	// "boundary*" (RFC 2231), which package mime prefers to "boundary" and others pass over.
	if strings.IndexByte(lines[0], '*') >= 0 {
		return mediaOther, ""
	}
	name, parameters, err := mime.ParseMediaType(lines[0])
	if err != nil || !isUTF8(parameters["charset"]) {
		return mediaOther, ""
	}
	switch boundary = parameters["boundary"]; {
	case name == "application/x-www-form-urlencoded":
		return mediaForm, ""
	case name == "multipart/form-data": // without a boundary it can't be read, which shows there
		return mediaMultipart, boundary
	case name == "application/json" || strings.HasSuffix(name, "+json"):
		return mediaJSON, ""
	}
	return mediaOther, ""
}

func isUTF8(charset string) bool {
	return charset == "" || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8") || strings.EqualFold(charset, "us-ascii")
}
