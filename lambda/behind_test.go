package lambda_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/lambda"
)

// Key functions and the handler find the very event, as a value of its own type.
func TestEvent(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		want := e.decoded()
		payload := encode(t, e.from(awsEvent(t, e.file), "203.0.113.9", "1.1.1.1"))
		require.NoError(t, json.Unmarshal(payload, want))
		var inKey, inHandler any
		g := newGuard(t, fivePerHour, keyedBy(handler.ByFunc(func(r *http.Request) string {
			inKey = lambda.Event(r.Context())
			return "one for all"
		})))
		h := wrap(g, func(ctx context.Context, _ any) { inHandler = lambda.Event(ctx) })
		b, err := h.Invoke(t.Context(), payload)
		require.NoError(t, err)
		require.Equal(t, 200, status(decode(t, b)))
		require.Equal(t, want, pointerTo(inKey))
		require.Equal(t, want, pointerTo(inHandler))
	})
	require.Nil(t, lambda.Event(context.Background()))
}

// pointerTo is what decoding into an event makes.
func pointerTo(ev any) any {
	switch ev := ev.(type) {
	case events.APIGatewayV2HTTPRequest:
		return &ev
	case events.LambdaFunctionURLRequest:
		return &ev
	case events.APIGatewayProxyRequest:
		return &ev
	case events.ALBTargetGroupRequest:
		return &ev
	}
	return ev
}

// A key of the event's own, through the wrapper that knows events alone.
func TestEventAsAKey(t *testing.T) {
	byTenant := keyedBy(handler.ByFunc(func(r *http.Request) string {
		ev, _ := lambda.Event(r.Context()).(events.APIGatewayV2HTTPRequest)
		return ev.StageVariables["tenant"]
	}))
	e := byName("http api")
	for name, h := range map[string]awslambda.Handler{
		"typed": e.typed(newGuard(t, fivePerHour, byTenant), ignore),
		"http":  plain(newGuard(t, fivePerHour, byTenant), ignore),
		"raw":   raw(t, e)(newGuard(t, fivePerHour, byTenant), ignore),
	} {
		for _, tenant := range []string{"ann", "bob"} {
			require.Equal(t, 5, budget(t, h, 20, func(i int) object {
				return put(e.from(awsEvent(t, e.file), "203.0.113."+string(rune('0'+i%10)), ""), "stageVariables.tenant", tenant)
			}), "%s %s", name, tenant)
		}
	}
}

// The runtime reads the next event into the same bytes. Whoever kept the context sees
// what was decoded in time, or nothing; never another client's event.
func TestEventAfterItsInvocation(t *testing.T) {
	e := byName("http api")
	for _, way := range []string{"http", "raw"} {
		t.Run(way, func(t *testing.T) {
			var kept context.Context
			var ask bool
			seen := func(ctx context.Context, _ any) {
				kept = ctx
				if ask {
					lambda.Event(ctx)
				}
			}
			g := newGuard(t, fivePerHour)
			h := plain(g, seen)
			if way == "raw" {
				h = lambda.Raw(g, handlerFunc(func(ctx context.Context, _ []byte) ([]byte, error) {
					seen(ctx, nil)
					return []byte(`{"statusCode":200}`), nil
				}))
			}
			for _, ask = range []bool{false, true} {
				payload := encode(t, put(e.from(awsEvent(t, e.file), "203.0.113.9", ""), "body", "mine"))
				_, err := h.Invoke(t.Context(), payload)
				require.NoError(t, err)
				copy(payload, encode(t, put(awsEvent(t, e.file), "body", "another's")))
				if !ask {
					require.Nil(t, lambda.Event(kept))
					continue
				}
				ev, ok := lambda.Event(kept).(events.APIGatewayV2HTTPRequest)
				require.True(t, ok)
				require.Equal(t, "mine", ev.Body)
			}
		})
	}
}

// Several goroutines of a handler may ask at once.
func TestEventAtTheSameTime(t *testing.T) {
	e := byName("alb")
	h := plain(newGuard(t, fivePerHour), func(ctx context.Context, _ any) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if ev, ok := lambda.Event(ctx).(events.ALBTargetGroupRequest); !ok || ev.HTTPMethod == "" {
					t.Error("no event")
				}
			})
		}
		wg.Wait()
	})
	require.Equal(t, 200, status(invoke(t, h, e.from(awsEvent(t, e.file), "203.0.113.9", ""))))
}
