package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	awslambda "github.com/aws/aws-lambda-go/lambda"
)

// HTTP returns a Lambda handler that runs h for the requests of an HTTP API (payload
// format 2.0), a Function URL with InvokeMode BUFFERED, a REST API (payload format
// 1.0) and an Application Load Balancer, whichever the event is: a mux, the handler
// that a guard returned, a form, a webhook receiver.
//
// The request is as the package's documentation describes it. The answer is
// collected and returned when h returns; headers of the connection, trailers and
// informational answers are left out. A body of valid UTF-8 without a
// Content-Encoding travels as text, any other as base64, which a REST API decodes
// only if binaryMediaTypes fits. A body in the event that is not the base64 it says
// it is gets the answer 400, and an event that is none of the four is an error; h
// runs for neither. A load balancer's health checks have no address: exempt their
// path with [handler.Paths]. Status 499 and codes that HTTP does not have become 503 and 500.
//
// A panic of h passes through, and Lambda ends the process; http.ErrAbortHandler is
// an error instead.
func HTTP(h http.Handler) awslambda.Handler { return &httpHandler{h} }

type httpHandler struct{ next http.Handler }

var errAborted = errors.New("lambda: the handler aborted its answer")

// Invoke implements lambda.Handler of aws-lambda-go.
func (h *httpHandler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	if h.next == nil {
		return nil, errNoHandler
	}
	// Why it could not be decoded is not repeated: it may quote the event.
	e, err := decode(payload)
	if err != nil {
		e = &event{}
	}
	form := e.shape()
	p := e.parts(form)
	if p == nil {
		return nil, errShape("an HTTP request of an HTTP API, a REST API, a Function URL or an Application Load Balancer")
	}
	behind := &undecoded{payload: payload, form: form}
	defer behind.forget()
	p.claims = e.claims()
	r := p.request(withEvent(ctx, behind))
	rec := newRecorder(r.Method)
	if body, ok := e.decodedBody(); ok {
		setBody(r, body, false)
		if err := serve(h.next, rec, r); err != nil {
			return nil, err
		}
	} else {
		http.Error(rec, "the body is not valid base64", http.StatusBadRequest)
	}
	return rec.marshal(form, e.multi())
}

// decode reads an event. With an error of type [*json.UnmarshalTypeError] the event
// holds all that could be read.
func decode(payload []byte) (*event, error) {
	e := new(event)
	return e, json.Unmarshal(payload, e)
}

// parts reads the request out of an event of this form; nil for shapeNone.
func (e *event) parts(form shape) *parts {
	switch form {
	case shapeHTTPAPI:
		return e.httpAPI()
	case shapeFunctionURL:
		return e.payload2()
	case shapeREST:
		return e.rest()
	case shapeALB:
		return e.alb()
	}
	return nil
}

// marshal returns the answer in the form that the platform reads. multi is for load
// balancers: whether the event came with multi-value headers.
func (rec *recorder) marshal(form shape, multi bool) ([]byte, error) {
	switch form {
	case shapeHTTPAPI:
		return marshal(rec.httpAPI())
	case shapeFunctionURL:
		return marshal(rec.functionURL())
	case shapeREST:
		return marshal(rec.rest())
	default:
		return marshal(rec.alb(multi))
	}
}

// serve runs h. Only the panic by which a handler says that it can't finish its
// answer is caught: it would cost the process, and with it all that its memory has
// counted.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	finished := false
	defer func() {
		deleteUploads(r)
		if finished {
			return
		}
		if p := recover(); p == http.ErrAbortHandler {
			err = errAborted
		} else if p != nil {
			panic(p)
		}
	}()
	h.ServeHTTP(w, r)
	finished = true
	return nil
}

// deleteUploads removes the files of a multipart form, as net/http's server does: an
// instance lives long, and its /tmp is small.
func deleteUploads(r *http.Request) {
	if r.MultipartForm != nil {
		_ = r.MultipartForm.RemoveAll() // what can't be removed, nobody could
	}
}

func (e *event) decodedBody() (string, bool) {
	if !e.Base64 {
		return e.Body, true
	}
	b, err := base64.StdEncoding.DecodeString(e.Body)
	return string(b), err == nil
}

// marshal is json.Marshal without the escapes for HTML, which would make the page in
// an answer longer.
func marshal(answer any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
