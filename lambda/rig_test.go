package lambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	"github.com/sallyport/sallyport/stores/memory"
)

// countingStore is memory that tells how often it was asked.
type countingStore struct {
	*memory.Store
	takes atomic.Int64
}

func (s *countingStore) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	s.takes.Add(1)
	d, err := s.Store.Take(ctx, hit)
	d.Source = stores.Shared
	return d, err
}

// TakeAll asks hit by hit: the one of memory would pass by what this double does.
func (s *countingStore) TakeAll(ctx context.Context, hits []stores.Hit, out []stores.Decision) (int, error) {
	for i, hit := range hits {
		d, err := s.Take(ctx, hit)
		if err != nil {
			return i, err
		}
		if out[i] = d; !d.Allowed {
			return i + 1, nil
		}
	}
	return len(hits), nil
}

func newCounting(t testing.TB) *countingStore {
	m, err := memory.New(memory.Config{})
	require.NoError(t, err)
	return &countingStore{Store: m}
}

// newGuard makes a guard over memory, or over what change puts in its place.
func newGuard(t testing.TB, limit stores.Limit, change ...func(*handler.Config)) *handler.Guard {
	m, err := memory.New(memory.Config{})
	require.NoError(t, err)
	cfg := handler.Config{
		Store:    m,
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{{Name: "test", Limit: limit, Key: handler.ByIP()}},
		Logger:   slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	g, err := handler.New(cfg)
	require.NoError(t, err)
	return g
}

func keyedBy(k handler.Key) func(*handler.Config) {
	return func(cfg *handler.Config) { cfg.Policies[0].Key = k }
}

var fivePerHour = stores.FixedWindow(5, time.Hour)

// awsEvents is the folder of example events that aws-lambda-go ships.
var awsEvents = sync.OnceValue(func() string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-lambda-go").Output()
	if err != nil {
		panic(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "events", "testdata")
})

// object is a decoded event or answer.
type object = map[string]any

func awsEvent(t testing.TB, name string) object {
	b, err := os.ReadFile(filepath.Join(awsEvents(), name))
	require.NoError(t, err)
	var ev object
	require.NoError(t, json.Unmarshal(b, &ev))
	return ev
}

// put sets a value at a dotted path and returns ev.
func put(ev object, path string, value any) object {
	at := ev
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		next, ok := at[name].(object)
		if !ok {
			next = object{}
			at[name] = next
		}
		at = next
	}
	at[names[len(names)-1]] = value
	return ev
}

func encode(t testing.TB, ev any) []byte {
	b, err := json.Marshal(ev)
	require.NoError(t, err)
	return b
}

// entry is one form of events, with the ways through the kit that take it.
type entry struct {
	name    string
	file    string
	multi   bool // the headers that count are in multiValueHeaders
	decoded func() any
	// from sets the address of the client, and what he claims it to be.
	from func(ev object, addr, claim string) object
	// typed wraps a typed handler that answers with a body and two cookies where it can.
	typed func(g *handler.Guard, seen func(context.Context, any)) awslambda.Handler
}

// typed is a typed function as Lambda runs it: JSON in, JSON out. The Handler that
// NewHandler of aws-lambda-go v1.55.1 returns is no use for parallel tests: its
// Invoke returns a buffer that it has put back into a pool.
type typed[In, Out any] func(context.Context, In) (Out, error)

func (f typed[In, Out]) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var in In
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, err
	}
	out, err := f(ctx, in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

func entries() []entry {
	set := map[string]string{"Content-Type": "text/plain", "X-User": "set"}
	return []entry{
		{
			name: "http api", file: "apigw-v2-request-no-authorizer.json",
			decoded: func() any { return new(events.APIGatewayV2HTTPRequest) },
			from: func(ev object, addr, claim string) object {
				put(ev, "requestContext.http.sourceIp", addr)
				return put(ev, "headers.x-forwarded-for", claim+","+addr)
			},
			typed: func(g *handler.Guard, seen func(context.Context, any)) awslambda.Handler {
				return typed[events.APIGatewayV2HTTPRequest, events.APIGatewayV2HTTPResponse](lambda.HTTPAPI(g, func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
					seen(ctx, &ev)
					return events.APIGatewayV2HTTPResponse{StatusCode: 200, Headers: set, Body: "hello", Cookies: []string{"a=1; Path=/", "b=2"}}, nil
				}))
			},
		},
		{
			name: "function url", file: "lambda-urls-request.json",
			decoded: func() any { return new(events.LambdaFunctionURLRequest) },
			from: func(ev object, addr, claim string) object {
				put(ev, "requestContext.http.sourceIp", addr)
				return put(ev, "headers.x-forwarded-for", claim) // truncated to the leftmost
			},
			typed: func(g *handler.Guard, seen func(context.Context, any)) awslambda.Handler {
				return typed[events.LambdaFunctionURLRequest, events.LambdaFunctionURLResponse](lambda.FunctionURL(g, func(ctx context.Context, ev events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
					seen(ctx, &ev)
					return events.LambdaFunctionURLResponse{StatusCode: 200, Headers: set, Body: "hello", Cookies: []string{"a=1; Path=/", "b=2"}}, nil
				}))
			},
		},
		{
			name: "rest api", file: "apigw-request.json",
			decoded: func() any { return new(events.APIGatewayProxyRequest) },
			from: func(ev object, addr, claim string) object {
				put(ev, "requestContext.identity.sourceIp", addr)
				put(ev, "headers.X-Forwarded-For", claim+", "+addr)
				return put(ev, "multiValueHeaders.X-Forwarded-For", []string{claim + ", " + addr})
			},
			typed: func(g *handler.Guard, seen func(context.Context, any)) awslambda.Handler {
				return typed[events.APIGatewayProxyRequest, events.APIGatewayProxyResponse](lambda.RESTAPI(g, func(ctx context.Context, ev events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
					seen(ctx, &ev)
					return events.APIGatewayProxyResponse{StatusCode: 200, Headers: set, Body: "hello",
						MultiValueHeaders: map[string][]string{"Set-Cookie": {"a=1; Path=/", "b=2"}}}, nil
				}))
			},
		},
		{
			name: "alb", file: "alb-lambda-target-request-headers-only.json",
			decoded: func() any { return new(events.ALBTargetGroupRequest) },
			from: func(ev object, addr, claim string) object {
				return put(ev, "headers.x-forwarded-for", claim+", "+addr)
			},
			typed: func(g *handler.Guard, seen func(context.Context, any)) awslambda.Handler {
				return typed[events.ALBTargetGroupRequest, events.ALBTargetGroupResponse](lambda.ALB(g, func(ctx context.Context, ev events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
					seen(ctx, &ev)
					return events.ALBTargetGroupResponse{StatusCode: 200, StatusDescription: "200 OK", Headers: set, Body: "hello"}, nil
				}))
			},
		},
		{
			name: "alb multi", file: "alb-lambda-target-request-multivalue-headers.json", multi: true,
			decoded: func() any { return new(events.ALBTargetGroupRequest) },
			from: func(ev object, addr, claim string) object {
				return put(ev, "multiValueHeaders.x-forwarded-for", []string{claim, claim + ", " + addr})
			},
			typed: func(g *handler.Guard, seen func(context.Context, any)) awslambda.Handler {
				return typed[events.ALBTargetGroupRequest, events.ALBTargetGroupResponse](lambda.ALB(g, func(ctx context.Context, ev events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
					seen(ctx, &ev)
					return events.ALBTargetGroupResponse{StatusCode: 200, StatusDescription: "200 OK", Body: "hello",
						MultiValueHeaders: map[string][]string{"Content-Type": {"text/plain"}, "X-User": {"set"}, "Set-Cookie": {"a=1; Path=/", "b=2"}}}, nil
				}))
			},
		},
	}
}

// plain is an http.Handler that answers as the typed ones do, behind g.
func plain(g *handler.Guard, seen func(context.Context, any)) awslambda.Handler {
	return lambda.HTTP(g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen(r.Context(), nil)
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-User", "set")
		w.Header().Add("Set-Cookie", "a=1; Path=/")
		w.Header().Add("Set-Cookie", "b=2")
		_, _ = w.Write([]byte("hello"))
	})))
}

func ignore(context.Context, any) {}

// raw is the typed function behind Raw. The guard that the typed wrapper wants lets all
// pass and shows nothing.
func raw(t testing.TB, e entry) func(*handler.Guard, func(context.Context, any)) awslambda.Handler {
	open := newGuard(t, stores.FixedWindow(1<<30, time.Hour), func(cfg *handler.Config) { cfg.Headers = handler.HeadersOff })
	return func(g *handler.Guard, seen func(context.Context, any)) awslambda.Handler {
		return lambda.Raw(g, e.typed(open, seen))
	}
}

// ways runs f for each form of events, through the typed wrapper, HTTP and Raw.
func ways(t *testing.T, f func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler)) {
	for _, e := range entries() {
		t.Run(e.name+"/typed", func(t *testing.T) { f(t, e, e.typed) })
		t.Run(e.name+"/http", func(t *testing.T) { f(t, e, plain) })
		t.Run(e.name+"/raw", func(t *testing.T) { f(t, e, raw(t, e)) })
	}
}

// invoke returns the decoded answer of h.
func invoke(t testing.TB, h awslambda.Handler, ev any) object {
	b, err := h.Invoke(t.Context(), encode(t, ev))
	require.NoError(t, err)
	return decode(t, b)
}

func decode(t testing.TB, b []byte) object {
	var answer object
	require.NoError(t, json.Unmarshal(b, &answer), "%s", b)
	noNulls(t, answer, "answer")
	return answer
}

// noNulls fails on a null anywhere: a load balancer makes 502 of it.
func noNulls(t testing.TB, v any, at string) {
	switch v := v.(type) {
	case nil:
		require.Fail(t, "null in the answer", at)
	case object:
		for name, inner := range v {
			noNulls(t, inner, at+"."+name)
		}
	case []any:
		for i, inner := range v {
			noNulls(t, inner, fmt.Sprint(at, "[", i, "]"))
		}
	}
}

func status(answer object) int {
	n, _ := answer["statusCode"].(float64)
	return int(n)
}

// header returns the lines of a header in the form that the platform reads for e.
func (e entry) header(answer object, name string) []string {
	var lines []string
	if !e.multi {
		single, _ := answer["headers"].(object)
		for key, value := range single {
			if strings.EqualFold(key, name) {
				lines = append(lines, value.(string))
			}
		}
	}
	if e.multi || e.name == "rest api" {
		multi, _ := answer["multiValueHeaders"].(object)
		for key, values := range multi {
			if strings.EqualFold(key, name) {
				for _, v := range values.([]any) {
					lines = append(lines, v.(string))
				}
			}
		}
	}
	if strings.EqualFold(name, "Set-Cookie") {
		cookies, _ := answer["cookies"].([]any)
		for _, v := range cookies {
			lines = append(lines, v.(string))
		}
	}
	return lines
}

func (e entry) one(t testing.TB, answer object, name string) string {
	lines := e.header(answer, name)
	require.Len(t, lines, 1, name)
	return lines[0]
}
