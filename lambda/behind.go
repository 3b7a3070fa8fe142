package lambda

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/aws/aws-lambda-go/events"
)

// Event returns the event behind a request, for keys that look at what no request has
// ([handler.ByFunc], Policy.Skip, LimitBy, Cost) and for an http.Handler behind [HTTP]:
//
//	handler.ByFunc(func(r *http.Request) string {
//		ev, _ := lambda.Event(r.Context()).(events.APIGatewayV2HTTPRequest)
//		return ev.StageVariables["tenant"]
//	})
//
// It is an [events.APIGatewayV2HTTPRequest], [events.LambdaFunctionURLRequest],
// [events.APIGatewayProxyRequest] or [events.ALBTargetGroupRequest], a value and no
// pointer, whose maps are the ones that the handler gets; nil if ctx is of no request
// of this package. Behind [HTTP] and [Raw] the event is decoded when it is first asked
// for, and only while the invocation runs: after it, what nobody asked for is nil. A
// member of the wrong type is left empty.
func Event(ctx context.Context) any {
	switch b := ctx.Value(behindKey{}).(type) {
	case *events.APIGatewayV2HTTPRequest:
		return *b
	case *events.LambdaFunctionURLRequest:
		return *b
	case *events.APIGatewayProxyRequest:
		return *b
	case *events.ALBTargetGroupRequest:
		return *b
	case *undecoded:
		return b.event()
	}
	return nil
}

// behindKey is what a context holds an event under: a pointer to a typed one, so that
// nothing is copied until somebody asks, or an undecoded one.
type behindKey struct{}

func withEvent(ctx context.Context, behind any) context.Context {
	return context.WithValue(ctx, behindKey{}, behind)
}

// undecoded is an event that arrived as JSON.
type undecoded struct {
	once    sync.Once
	payload []byte
	form    shape
	value   any
}

func (u *undecoded) event() any {
	u.once.Do(func() {
		switch u.form {
		case shapeHTTPAPI:
			u.value = decodedAs[events.APIGatewayV2HTTPRequest](u.payload)
		case shapeFunctionURL:
			u.value = decodedAs[events.LambdaFunctionURLRequest](u.payload)
		case shapeREST:
			u.value = decodedAs[events.APIGatewayProxyRequest](u.payload)
		case shapeALB:
			u.value = decodedAs[events.ALBTargetGroupRequest](u.payload)
		}
		u.payload = nil
	})
	return u.value
}

// forget ends the time in which the event can be decoded: the runtime reads the next
// one into the same bytes.
func (u *undecoded) forget() {
	u.once.Do(func() { u.payload = nil })
}

func decodedAs[T any](payload []byte) T {
	var ev T
	_ = json.Unmarshal(payload, &ev) // it was an object, and what fits is in ev
	return ev
}
