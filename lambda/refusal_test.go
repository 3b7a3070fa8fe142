package lambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/lambda"
	"github.com/sallyport/sallyport/stores"
)

// Whatever the client claims, the sixth request is refused in the
// form that the platform reads, and nobody else is.
func TestRefusal(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		var ran atomic.Int64
		h := wrap(newGuard(t, fivePerHour), func(context.Context, any) { ran.Add(1) })
		for i := range 20 {
			answer := invoke(t, h, e.from(awsEvent(t, e.file), "203.0.113.9", fmt.Sprintf("198.51.100.%d", i)))
			if i < 5 {
				require.Equal(t, 200, status(answer), i)
				require.Equal(t, "hello", answer["body"])
				continue
			}
			require.Equal(t, 429, status(answer), i)
			seconds, err := strconv.Atoi(e.one(t, answer, "Retry-After"))
			require.NoError(t, err)
			require.GreaterOrEqual(t, seconds, 1)
			require.Equal(t, `"test";q=5;w=3600`, e.one(t, answer, "RateLimit-Policy"))
			require.Equal(t, fmt.Sprintf(`"test";r=0;t=%d`, seconds), e.one(t, answer, "RateLimit"))
			require.Equal(t, "no-store", e.one(t, answer, "Cache-Control"))
			require.Equal(t, "application/problem+json", e.one(t, answer, "Content-Type"))
			require.Equal(t, false, answer["isBase64Encoded"] == true)
			var problem struct{ Status int }
			require.NoError(t, json.Unmarshal([]byte(answer["body"].(string)), &problem))
			require.Equal(t, 429, problem.Status)
			if e.name == "alb" || e.multi {
				require.Equal(t, "429 Too Many Requests", answer["statusDescription"])
			}
			if e.multi {
				require.Empty(t, answer["headers"])
			}
		}
		require.Equal(t, int64(5), ran.Load())

		// The address that the offender claimed is not spent.
		answer := invoke(t, h, e.from(awsEvent(t, e.file), "198.51.100.7", "203.0.113.9"))
		require.Equal(t, 200, status(answer))
		require.Equal(t, `"test";r=4;t=3600`, e.one(t, answer, "RateLimit"))
	})
}

// What the user's handler set stays, and the fields come beside it.
func TestAllowedAnswer(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		h := wrap(newGuard(t, fivePerHour), ignore)
		for i := range 3 {
			answer := invoke(t, h, e.from(awsEvent(t, e.file), "203.0.113.9", "1.1.1.1"))
			require.Equal(t, 200, status(answer))
			require.Equal(t, "hello", answer["body"])
			require.Equal(t, "text/plain", e.one(t, answer, "Content-Type"))
			require.Equal(t, "set", e.one(t, answer, "X-User"))
			require.Equal(t, `"test";q=5;w=3600`, e.one(t, answer, "RateLimit-Policy"))
			require.Contains(t, e.one(t, answer, "RateLimit"), fmt.Sprintf(`"test";r=%d;t=`, 4-i))
			require.Empty(t, e.header(answer, "Retry-After"))
			if cookies := e.header(answer, "Set-Cookie"); len(cookies) > 0 { // a typed handler without multi-value headers sets none
				require.ElementsMatch(t, []string{"a=1; Path=/", "b=2"}, cookies)
			} else {
				require.Equal(t, "alb", e.name)
			}
		}
	})
}

// The event reaches the user's handler as it came.
func TestEventIsUnchanged(t *testing.T) {
	for _, e := range entries() {
		payload := encode(t, put(put(e.from(awsEvent(t, e.file), "203.0.113.9", "1.1.1.1"), "isBase64Encoded", true), "body", "ZW1haWw9YUBiLmM="))
		want := e.decoded()
		require.NoError(t, json.Unmarshal(payload, want))
		var seen any
		h := e.typed(newGuard(t, fivePerHour), func(_ context.Context, ev any) { seen = ev })
		_, err := h.Invoke(t.Context(), payload)
		require.NoError(t, err)
		require.Equal(t, want, seen, e.name)
	}
}

func TestParallelInvocations(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		h := wrap(newGuard(t, fivePerHour), ignore)
		payload := encode(t, e.from(awsEvent(t, e.file), "203.0.113.9", "1.1.1.1"))
		var passed, refused atomic.Int64
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				b, err := h.Invoke(context.Background(), payload)
				if err != nil {
					return
				}
				var answer struct{ StatusCode int }
				if json.Unmarshal(b, &answer) != nil {
					return
				}
				switch answer.StatusCode {
				case 200:
					passed.Add(1)
				case 429:
					refused.Add(1)
				}
			})
		}
		wg.Wait()
		require.Equal(t, int64(5), passed.Load())
		require.Equal(t, int64(95), refused.Load())
	})
}

// An answer that the user's handler keeps and returns again and again gathers no
// fields, and is read by all invocations at once.
func TestSharedAnswersAreNotWritten(t *testing.T) {
	shared := events.APIGatewayProxyResponse{
		StatusCode:        200,
		Headers:           map[string]string{"X-User": "set"},
		MultiValueHeaders: map[string][]string{"ratelimit": {`"inner";r=1;t=1`}},
	}
	h := lambda.RESTAPI(newGuard(t, stores.FixedWindow(1000, time.Hour)), func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		return shared, nil
	})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			_, _ = h(context.Background(), events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/"})
		})
	}
	wg.Wait()
	require.Equal(t, map[string]string{"X-User": "set"}, shared.Headers)
	require.Equal(t, map[string][]string{"ratelimit": {`"inner";r=1;t=1`}}, shared.MultiValueHeaders)
}

// A guard within a guard: both are in one line, the outer first, under the spelling
// that the answer has.
func TestNestedGuards(t *testing.T) {
	outer := newGuard(t, fivePerHour)
	inner := newGuard(t, stores.FixedWindow(2, time.Hour), func(cfg *handler.Config) { cfg.Policies[0].Name = "inner" })
	bare := func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: 200}, nil
	}
	h := lambda.HTTPAPI(outer, lambda.HTTPAPI(inner, bare))
	var ev events.APIGatewayV2HTTPRequest
	ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.SourceIP = "GET", "203.0.113.9"
	for i, want := range []int{200, 200, 429, 429, 429, 429} {
		resp, err := h(t.Context(), ev)
		require.NoError(t, err)
		require.Equal(t, want, resp.StatusCode, i)
		require.NotNil(t, resp.Headers)
		require.NotNil(t, resp.MultiValueHeaders)
		require.NotNil(t, resp.Cookies)
		switch i {
		case 0:
			require.Equal(t, `"test";q=5;w=3600, "inner";q=2;w=3600`, resp.Headers["Ratelimit-Policy"])
			require.Equal(t, `"test";r=4;t=3600, "inner";r=1;t=3600`, resp.Headers["Ratelimit"])
		case 5: // the outer's own
			require.Equal(t, `"test";q=5;w=3600`, resp.Headers["Ratelimit-Policy"])
		}
	}
}

// A policy that an outer and an inner guard ask is listed once, with the later numbers.
func TestNestedGuardsOfOnePolicy(t *testing.T) {
	inner := newGuard(t, fivePerHour)
	shared := handler.Policy{Name: "test", Limit: fivePerHour, Key: handler.ByIP()}
	wide := shared
	wide.Name, wide.Limit.Quota = "wide", 100
	outer, err := inner.With(wide, shared)
	require.NoError(t, err)
	v2 := lambda.HTTPAPI(outer, lambda.HTTPAPI(inner, func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: 200}, nil
	}))
	alb := lambda.ALB(outer, lambda.ALB(inner, func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
		return events.ALBTargetGroupResponse{StatusCode: 200, MultiValueHeaders: map[string][]string{"ratelimit": {`"mine";r=1`, ""}}}, nil
	}))
	var ev events.APIGatewayV2HTTPRequest
	ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.SourceIP = "GET", "203.0.113.9"
	albEvent := events.ALBTargetGroupRequest{HTTPMethod: "GET", MultiValueHeaders: map[string][]string{"x-forwarded-for": {"203.0.113.10"}}}
	for i, want := range []int{200, 200, 429} {
		left := []string{"3", "1", "0"}[i]
		resp, err := v2(t.Context(), ev)
		require.NoError(t, err)
		require.Equal(t, want, resp.StatusCode)
		require.Equal(t, `"wide";q=100;w=3600, "test";q=5;w=3600`, resp.Headers["Ratelimit-Policy"])
		require.Regexp(t, `^"wide";r=\d+;t=3600, "test";r=`+left+`;t=3600$`, resp.Headers["Ratelimit"])

		albResp, err := alb(t.Context(), albEvent)
		require.NoError(t, err)
		require.Equal(t, want, albResp.StatusCode)
		require.Equal(t, []string{`"wide";q=100;w=3600, "test";q=5;w=3600`}, albResp.MultiValueHeaders["Ratelimit-Policy"])
		if want == 200 { // the user's own name stands
			require.Len(t, albResp.MultiValueHeaders["ratelimit"], 1)
			require.Regexp(t, `^"wide";r=\d+;t=3600, "test";r=`+left+`;t=3600, "mine";r=1$`, albResp.MultiValueHeaders["ratelimit"][0])
		}
	}
}

func TestLegacyFieldsOfAnInnerGuardStay(t *testing.T) {
	g := newGuard(t, fivePerHour, func(cfg *handler.Config) { cfg.Headers = handler.HeadersLegacy })
	h := lambda.FunctionURL(g, func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		return events.LambdaFunctionURLResponse{StatusCode: 200, Headers: map[string]string{"x-ratelimit-remaining": "1"}}, nil
	})
	var ev events.LambdaFunctionURLRequest
	ev.RequestContext.HTTP.Method = "GET"
	resp, err := h(t.Context(), ev)
	require.NoError(t, err)
	require.Equal(t, "1", resp.Headers["x-ratelimit-remaining"])
	require.Equal(t, "5", resp.Headers["X-Ratelimit-Limit"])
	require.NotContains(t, resp.Headers, "X-Ratelimit-Remaining")
}

// An error of the user's handler is his: it passes, with whatever came with it.
func TestHandlerErrorPasses(t *testing.T) {
	h := lambda.ALB(newGuard(t, fivePerHour), func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
		return events.ALBTargetGroupResponse{StatusCode: 500}, context.Canceled
	})
	resp, err := h(t.Context(), events.ALBTargetGroupRequest{HTTPMethod: "GET"})
	require.Equal(t, context.Canceled, err)
	require.Equal(t, events.ALBTargetGroupResponse{StatusCode: 500}, resp)
}

func TestHandlerPanicPasses(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		h := wrap(newGuard(t, fivePerHour), func(context.Context, any) { panic("the user's own") })
		payload := encode(t, e.from(awsEvent(t, e.file), "203.0.113.9", "1.1.1.1"))
		require.PanicsWithValue(t, "the user's own", func() { _, _ = h.Invoke(context.Background(), payload) })
	})
}

// In Signal mode the handler runs, and learns from its context what it may do.
func TestSignalReachesTheHandler(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		g := newGuard(t, fivePerHour, func(cfg *handler.Config) { cfg.Policies[0].Mode = handler.Signal })
		var allowed []bool
		h := wrap(g, func(ctx context.Context, _ any) {
			v, ok := handler.FromContext(ctx)
			require.True(t, ok)
			allowed = append(allowed, v.Allowed)
		})
		for range 7 {
			answer := invoke(t, h, e.from(awsEvent(t, e.file), "203.0.113.9", "1.1.1.1"))
			require.Equal(t, 200, status(answer))
			require.Empty(t, e.header(answer, "RateLimit"))
		}
		require.Equal(t, []bool{true, true, true, true, true, false, false}, allowed)
	})
}

// An invocation whose time is over counts nothing, runs nothing, and is answered all
// the same.
func TestTimeIsOver(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		store := newCounting(t)
		g := newGuard(t, fivePerHour, func(cfg *handler.Config) { cfg.Store = store })
		ran := false
		h := wrap(g, func(context.Context, any) { ran = true })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b, err := h.Invoke(ctx, encode(t, e.from(awsEvent(t, e.file), "203.0.113.9", "1.1.1.1")))
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, status(decode(t, b)))
		require.False(t, ran)
		require.Zero(t, store.takes.Load())
	})
}

// The context of the invocation, with its deadline, is the request's.
func TestDeadline(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		want := time.Now().Add(time.Hour)
		ctx, cancel := context.WithDeadline(t.Context(), want)
		defer cancel()
		var got, inKey time.Time
		g := newGuard(t, fivePerHour, keyedBy(handler.ByFunc(func(r *http.Request) string {
			inKey, _ = r.Context().Deadline()
			return "x"
		})))
		h := wrap(g, func(ctx context.Context, _ any) { got, _ = ctx.Deadline() })
		_, err := h.Invoke(ctx, encode(t, awsEvent(t, e.file)))
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, want, inKey)
	})
}

// A nil guard refuses, a nil handler is an error; neither is a panic.
func TestNil(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		answer := invoke(t, wrap(nil, ignore), e.from(awsEvent(t, e.file), "203.0.113.9", "1.1.1.1"))
		require.Equal(t, http.StatusServiceUnavailable, status(answer))
	})
	g := newGuard(t, fivePerHour)
	for _, h := range []awslambda.Handler{
		awslambda.NewHandler(lambda.HTTPAPI(g, nil)), awslambda.NewHandler(lambda.FunctionURL(g, nil)),
		awslambda.NewHandler(lambda.RESTAPI(g, nil)), awslambda.NewHandler(lambda.ALB(g, nil)), lambda.HTTP(nil),
	} {
		_, err := h.Invoke(t.Context(), []byte(`{}`))
		require.ErrorContains(t, err, "nil")
	}
}
