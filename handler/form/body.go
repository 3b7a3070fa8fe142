package form

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	typeURLEncoded = "application/x-www-form-urlencoded"
	typeMultipart  = "multipart/form-data"

	// maxParts is the bound of net/http.
	maxParts = 1000
)

// posted is a post as it was read.
type posted struct {
	kind     string // its media type
	boundary string
	body     []byte
	parsed   url.Values // by an outer layer, which has used the body up; else nil
	files    []string   // names of its fields that are files
}

// read reads the body into p and puts an equal one in its place, or returns the status
// that says why it can't. Fields in the URL are none of a post's.
func (f *Form) read(w http.ResponseWriter, r *http.Request, p *posted) int {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	p.kind, p.boundary = kind, parameters["boundary"]
	if err != nil || kind != typeURLEncoded && kind != typeMultipart || len(r.Header["Content-Type"]) > 1 {
		return http.StatusUnsupportedMediaType
	}
	switch {
	case kind == typeURLEncoded && r.PostForm != nil:
		p.parsed = r.PostForm
		return 0
	case kind == typeMultipart && r.MultipartForm != nil:
		p.parsed = r.MultipartForm.Value
		if p.parsed == nil {
			p.parsed = url.Values{}
		}
		p.files = slices.Sorted(maps.Keys(r.MultipartForm.File))
		return 0
	case kind == typeMultipart && p.boundary == "":
		return http.StatusBadRequest
	case r.ContentLength > f.maxBody:
		tellTooLarge(w)
		return http.StatusRequestEntityTooLarge
	case r.Body == nil:
		return 0
	}
	original := r.Body
	p.body, err = io.ReadAll(http.MaxBytesReader(w, original, f.maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge
	} else if err != nil {
		return http.StatusBadRequest
	}
	r.Body = &replay{*bytes.NewReader(p.body), original}
	return 0
}

// tellTooLarge has the server treat the connection as after a MaxBytesReader that was
// read beyond its bound: it then does not reset it before a client that is still sending
// has read the answer. Nothing is read of the body, which a client with Expect:
// 100-continue has not even sent.
func tellTooLarge(w http.ResponseWriter) {
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}

// replay is a body that was read, and closes the one that it was read from.
type replay struct {
	bytes.Reader
	original io.Closer
}

func (r *replay) Close() error { return r.original.Close() }

// field is one field of a post. A file has no value, and was given if it is not empty.
type field struct {
	name, value string
	file, given bool
}

var errTooManyParts = errors.New("too many parts")

// each calls do with the fields in their order, read as net/http reads them; values are
// only read where want says so. An error means that the body is no form.
func (p *posted) each(want func(name string) bool, do func(field)) error {
	switch {
	case p.parsed != nil:
		p.eachParsed(want, do)
		return nil
	case p.kind == typeURLEncoded:
		eachPair(string(p.body), want, do)
		return nil
	}
	return p.eachPart(want, do)
}

func (p *posted) eachParsed(want func(string) bool, do func(field)) {
	for _, name := range slices.Sorted(maps.Keys(p.parsed)) {
		if !want(name) {
			continue
		}
		for _, value := range p.parsed[name] {
			do(field{name: name, value: value, given: value != ""})
		}
	}
	for _, name := range p.files {
		if want(name) {
			do(field{name: name, file: true, given: true})
		}
	}
}

// eachPair splits like url.ParseQuery but makes no map, which would take many times
// the memory of the body. What that one leaves out, a pair with a semicolon or a broken
// escape, is left out here.
func eachPair(body string, want func(string) bool, do func(field)) {
	for body != "" {
		var pair string
		pair, body, _ = strings.Cut(body, "&")
		if pair == "" || strings.Contains(pair, ";") {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil || !want(name) {
			continue
		}
		if value, err = url.QueryUnescape(value); err == nil {
			do(field{name: name, value: value, given: value != ""})
		}
	}
}

func (p *posted) eachPart(want func(string) bool, do func(field)) error {
	reader := multipart.NewReader(bytes.NewReader(p.body), p.boundary)
	for range maxParts {
		part, err := reader.NextPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name := part.FormName()
		if name == "" || !want(name) {
			continue
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		if part.FileName() != "" {
			do(field{name: name, file: true, given: len(value) > 0})
			continue
		}
		do(field{name: name, value: string(value), given: len(value) > 0})
	}
	return errTooManyParts
}
