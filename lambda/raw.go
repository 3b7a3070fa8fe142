package lambda

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/sallyport/sallyport/handler"
)

// Raw returns next behind g, for a function that several kinds of event arrive at. It
// tells them apart by their form: requests of an HTTP API, a Function URL, a REST API
// and an Application Load Balancer are counted as by [HTTPAPI] and the like. All else
// goes to next uncounted, and what next makes of it comes back as it is: messages of
// WebSocket APIs, questions of authorizers, queues, schedules, pings that keep the
// function warm, a load balancer's health checks, {} and null. A load balancer's or
// gateway's request can't pass for one of those: its form is the platform's, and a
// client writes only values into it. Where one of these has an odd type the request is
// counted by what can be read of it.
//
// next gets the payload byte for byte, in a context with what [handler.FromContext],
// [handler.KeyValue] and [Event] find. The payload is the runtime's: next must not keep
// it. Rate limit fields are added to the headers of an answer that is an object with a
// statusCode, whose headers, multiValueHeaders and cookies are made empty where they
// are null; any other answer, and an error, is handed on as it is. So are answers that
// next streams, but for being collected: for those let the guard wrap the http.Handler
// that lambdaurl runs.
//
// next must return bytes that it does not write to again. The Handler that NewHandler
// of aws-lambda-go v1.55.1 returns does not keep to this: its bytes are of a buffer
// that the next invocation uses. With one invocation at a time that is harmless; where
// AWS_LAMBDA_MAX_CONCURRENCY allows more, one client would get another's answer, and
// Invoke returns an error for all. Use [HTTPAPI] and the like there, or a Handler of
// your own.
func Raw(g *handler.Guard, next awslambda.Handler) awslambda.Handler {
	return &rawHandler{newGuarded(g), next, isPooled(next)}
}

type rawHandler struct {
	guard  guarded
	next   awslambda.Handler
	pooled bool
}

var errPooled = errors.New("lambda: Raw around NewHandler can't run several invocations at once: their answers would be mixed up; see lambda.Raw")

// Invoke implements lambda.Handler of aws-lambda-go.
func (h *rawHandler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	switch {
	case h.next == nil:
		return nil, errNoHandler
	case h.pooled && lambdacontext.MaxConcurrency() > 1:
		return nil, errPooled
	}
	// The error does not matter: what is no JSON has no form, and what has one of the
	// forms is a request, however odd, and no free pass.
	e, _ := decode(payload)
	form := e.shape()
	p := e.parts(form)
	if p == nil || form == shapeALB && e.isHealthCheck() {
		return h.run(ctx, payload)
	}
	behind := &undecoded{payload: payload, form: form}
	defer behind.forget()
	p.claims = e.claims()
	r := p.request(withEvent(ctx, behind))
	setBody(r, e.Body, e.Base64)
	rec := h.guard.ask(r)
	if rec.allowed == nil {
		return rec.marshal(form, e.multi())
	}
	answer, err := h.run(rec.allowed, payload)
	if err != nil {
		return answer, err
	}
	return addToRaw(rec.header, form, e.multi(), answer), nil
}

// run returns what next does, in bytes that stay as they are.
func (h *rawHandler) run(ctx context.Context, payload []byte) ([]byte, error) {
	answer, err := h.next.Invoke(ctx, payload)
	if h.pooled {
		answer = bytes.Clone(answer)
	}
	return answer, err
}

// isPooled tells the Handler of NewHandler, which has no exported type.
func isPooled(next awslambda.Handler) bool {
	return fmt.Sprintf("%T", next) == "*lambda.handlerOptions"
}
