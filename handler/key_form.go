package handler

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

const kindForm = "form"

// ByForm counts by a field of a form, in the query or in a body of
// application/x-www-form-urlencoded or multipart/form-data. The body is read before
// any store is asked, up to Config.BodyLimit, and the handler gets it again byte for
// byte; its Form is not parsed for it. [KeyValue] gives the handler the value.
//
// The field must be there once: a second one, in the query, in the body or under
// another spelling of its name ("Email", "email[]"), even with the same value, is
// refused with 400, because nobody knows which one the handler takes. So is a body
// that might be read in two ways: another Content-Type, a charset other than UTF-8, a
// Content-Encoding, a pair or part that can't be read, a file under that name, a
// value that is no UTF-8 or has a NUL. A body beyond BodyLimit is refused with 413. Of
// the query, pairs that can't be read are passed over, as net/url does, unless they
// name the field. Only where the field is absent, empty or blank is there no
// identity, and the client's address counts instead.
//
// The value is what the caller says, nothing more: put a policy with ByIP before
// this one. New reports a field without a name.
func ByForm(field string) Key {
	if !isFieldName(field) {
		return Key{invalid{textOf(kindForm, field), "want the name of a form's field"}}
	}
	return Key{textKey{text: formText(field)}}
}

type formText string

func (f formText) kind() string { return kindForm }
func (f formText) name() string { return string(f) }
func (f formText) rank() rank   { return rankTarget }

func (f formText) find(q *inquiry) (string, presence) {
	found := fields{name: string(f)}
	if q.r.URL != nil {
		found.addQuery(q.r.URL.RawQuery)
	}
	if found.unclear() {
		return q.unreadable(http.StatusBadRequest)
	}
	body := q.content()
	if body.status != 0 {
		return q.unreadable(body.status)
	}
	switch {
	case body.parsed:
		found.addParsed(q.r)
	case body.media == mediaForm:
		found.addBody(string(body.data))
	case body.media == mediaMultipart:
		found.addMultipart(body.data, body.boundary)
	case body.media != mediaNone && found.n == 0:
		return q.misfit()
	case body.media != mediaNone:
		return q.unreadable(http.StatusBadRequest)
	}
	switch {
	case found.unclear():
		return q.unreadable(http.StatusBadRequest)
	case found.n == 0:
		return "", absent
	}
	return q.one(string(f), found.value)
}

// fields collects what a form says under one name.
type fields struct {
	name  string
	value string
	n     int
	bad   bool
}

func (f *fields) unclear() bool { return f.bad || f.n > 1 }

func (f *fields) add(value string) {
	f.value = value
	f.n++
}

// addQuery reads a query as url.ParseQuery does, with which net/http reads it.
func (f *fields) addQuery(query string) {
	f.addPairs(query, func(pair string) {
		// Whoever takes ";" for "&", as http.AllowQuerySemicolons does, or forgives a
		// broken escape, reads more than we do.
		for piece := range strings.SplitSeq(pair, ";") {
			name, _, _ := strings.Cut(piece, "=")
			if plain, err := url.QueryUnescape(name); err == nil {
				name = plain
			}
			f.bad = f.bad || spells(name, f.name)
		}
	})
}

// addBody is addQuery for a body, in which nothing may be out of order.
func (f *fields) addBody(body string) {
	f.addPairs(body, func(string) { f.bad = true })
}

func (f *fields) addPairs(pairs string, broken func(pair string)) {
	for pair := range strings.SplitSeq(pairs, "&") {
		if pair == "" {
			continue
		}
		if strings.IndexByte(pair, ';') >= 0 {
			broken(pair)
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err == nil {
			value, err = url.QueryUnescape(value)
		}
		switch {
		case err != nil:
			broken(pair)
		case spells(name, f.name):
			f.add(value)
		}
	}
}

// addMultipart reads parts as mime/multipart's ReadForm does, with which net/http
// reads them. A part whose name can't be read, or whose text is encoded once more,
// is none that all would read alike.
func (f *fields) addMultipart(body []byte, boundary string) {
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for parts := 0; !f.unclear(); parts++ {
		part, err := r.NextPart()
		if err == io.EOF {
			f.bad = boundaries(body, boundary) != parts+1
			return
		}
		if err != nil || part.FormName() == "" || isTwofold(part) {
			f.bad = true
			return
		}
		// PHP takes single quotes for double ones.
		if !spells(strings.Trim(part.FormName(), "'"), f.name) {
			continue
		}
		value, err := io.ReadAll(part)
		if err != nil || part.FileName() != "" || !isPlainPart(part) {
			f.bad = true
			return
		}
		f.add(string(value))
	}
}

// boundaries counts the lines that begin as a boundary does, which is all that RFC 2046
// asks of one (section 5.1.1). mime/multipart wants more of it, such as the line end that
// the first one had: for other readers a part may end, and another begin, within one of its.
func boundaries(body []byte, boundary string) int {
	line := []byte("\n--" + boundary)
	n := bytes.Count(body, line)
	if bytes.HasPrefix(body, line[1:]) {
		n++
	}
	return n
}

// isTwofold tells that a field of the part's header is there twice, of which mime/multipart
// reads the first and others the last; or that its name is an extended parameter of RFC
// 2231, which package mime prefers to a plain one and others pass over.
func isTwofold(part *multipart.Part) bool {
	for _, name := range [...]string{"Content-Disposition", "Content-Type", "Content-Transfer-Encoding"} {
		if len(part.Header[name]) > 1 {
			return true
		}
	}
	// Also within quotes, whose end not all see in one place.
	for parameter := range strings.SplitSeq(part.Header.Get("Content-Disposition"), ";") {
		if parameter = strings.TrimSpace(parameter); len(parameter) >= 5 && strings.EqualFold(parameter[:5], "name*") {
			return true
		}
	}
	return false
}

func isPlainPart(part *multipart.Part) bool {
	switch strings.ToLower(part.Header.Get("Content-Transfer-Encoding")) {
	case "", "7bit", "8bit", "binary":
	default:
		return false
	}
	kind := part.Header.Get("Content-Type")
	if kind == "" {
		return true
	}
	_, parameters, err := mime.ParseMediaType(kind)
	return err == nil && isUTF8(parameters["charset"])
}

// addParsed reads what an outer layer has parsed, for then the body is gone.
func (f *fields) addParsed(r *http.Request) {
	for name, values := range r.PostForm {
		if spells(name, f.name) {
			for _, value := range values {
				f.add(value)
			}
		}
	}
	if r.MultipartForm != nil {
		for name := range r.MultipartForm.File {
			f.bad = f.bad || spells(name, f.name)
		}
	}
}

// spells tells whether a decoder of forms might take name for field: those of Go
// pass over the case of letters, or read "field[]" and "field[0]" as one of several. PHP,
// to which a proxy may hand the request, passes over spaces before the name and what is
// behind a NUL, and reads a space or a full stop as "_".
func spells(name, field string) bool {
	name, _, _ = strings.Cut(strings.TrimLeft(name, " "), "\x00")
	if isSpelling(name, field) {
		return true
	}
	open := strings.LastIndexByte(name, '[')
	if open < 0 || name[len(name)-1] != ']' || strings.Trim(name[open+1:len(name)-1], "0123456789") != "" {
		return false
	}
	return isSpelling(name[:open], field)
}

func isSpelling(name, field string) bool {
	if strings.EqualFold(name, field) {
		return true
	}
	return strings.IndexByte(field, '_') >= 0 && strings.ContainsAny(name, " .") &&
		strings.EqualFold(strings.NewReplacer(" ", "_", ".", "_").Replace(name), field)
}
