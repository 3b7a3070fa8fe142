package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/lambda"
)

// handlerFunc is a Handler of one's own: bytes in, bytes out.
type handlerFunc func(context.Context, []byte) ([]byte, error)

func (f handlerFunc) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return f(ctx, payload)
}

// httpEvents are the example events of aws-lambda-go that are requests.
var httpEvents = map[string]bool{
	"alb-lambda-target-request-headers-only.json":       true,
	"alb-lambda-target-request-multivalue-headers.json": true,
	"apigw-request.json":                                true,
	"apigw-restapi-openapi-request.json":                true,
	"apigw-v2-request-iam.json":                         true,
	"apigw-v2-request-jwt-authorizer.json":              true,
	"apigw-v2-request-lambda-authorizer.json":           true,
	"apigw-v2-request-no-authorizer.json":               true,
	"lambda-urls-request.json":                          true,
}

// eachAWSEvent runs f for all example events of aws-lambda-go.
func eachAWSEvent(t *testing.T, f func(name string, payload []byte)) {
	files, err := filepath.Glob(filepath.Join(awsEvents(), "*.json"))
	require.NoError(t, err)
	require.Greater(t, len(files), 50)
	for _, file := range files {
		payload, err := os.ReadFile(file)
		require.NoError(t, err)
		f(filepath.Base(file), payload)
	}
}

// What is no request passes uncounted, any number of times: the payload reaches next and
// the answer the runtime byte for byte.
func TestRawPassesWhatIsNoRequest(t *testing.T) {
	store := newCounting(t)
	g := newGuard(t, fivePerHour, func(cfg *handler.Config) { cfg.Store = store })
	var got []byte
	reply, failure := []byte("{ \"not\":\tours, \"statusCode\": 7 }"), error(nil)
	h := lambda.Raw(g, handlerFunc(func(ctx context.Context, payload []byte) ([]byte, error) {
		got = payload
		require.Nil(t, lambda.Event(ctx))
		return reply, failure
	}))
	check := func(name string, payload []byte) {
		before := string(payload)
		for range 20 {
			got = nil
			b, err := h.Invoke(t.Context(), payload)
			require.ErrorIs(t, err, failure, name)
			require.Equal(t, string(reply), string(b), name)
			require.Equal(t, before, string(got), name)
		}
	}
	passed := 0
	eachAWSEvent(t, func(name string, payload []byte) {
		if !httpEvents[name] {
			check(name, payload)
			passed++
		}
	})
	require.Greater(t, passed, 50)
	for name, payload := range noRequests {
		check(name, payload)
	}
	failure = errors.New("the user's own")
	check("an error", []byte(`{}`))
	require.Zero(t, store.takes.Load())
}

// A request that is odd in one place is a request all the same: nothing that is put
// into an event turns the guard off.
func TestRawCountsOddRequests(t *testing.T) {
	for _, e := range entries() {
		for name, spoil := range map[string]func(ev object) object{
			"version":    func(ev object) object { return put(ev, "resource", []int{1}) },
			"headers":    func(ev object) object { return put(put(ev, "headers.x-odd", 7), "multiValueHeaders.x-odd", "7") },
			"cookies":    func(ev object) object { return put(ev, "cookies", object{}) },
			"body":       func(ev object) object { return put(ev, "body", object{"a": 1}) },
			"base64":     func(ev object) object { return put(put(ev, "body", "%%"), "isBase64Encoded", true) },
			"flag":       func(ev object) object { return put(ev, "isBase64Encoded", "yes") },
			"query":      func(ev object) object { return put(ev, "queryStringParameters", object{"a": nil, "b": 1}) },
			"authorizer": func(ev object) object { return put(ev, "requestContext.authorizer", []string{"x"}) },
			"stage":      func(ev object) object { return put(ev, "requestContext.stage", 1) },
			"path":       func(ev object) object { return put(put(ev, "path", nil), "rawPath", 3) },
		} {
			t.Run(e.name+"/"+name, func(t *testing.T) {
				h := lambda.Raw(newGuard(t, fivePerHour), handlerFunc(func(context.Context, []byte) ([]byte, error) {
					return []byte(`{"statusCode":200}`), nil
				}))
				for i := range 20 {
					answer := invoke(t, h, spoil(e.from(awsEvent(t, e.file), "203.0.113.9", "1.1.1.1")))
					want := 200
					if i >= 5 {
						want = 429
					}
					require.Equal(t, want, status(answer), i)
				}
			})
		}
	}
}

// Every example event through every wrapper: a request is served five times by those
// that take it, anything else is an error or passes uncounted, and nothing panics.
func TestEveryExampleThroughEveryWrapper(t *testing.T) {
	files := map[string][]byte{}
	eachAWSEvent(t, func(name string, payload []byte) { files[name] = payload })
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		for name, payload := range files {
			h := wrap(newGuard(t, fivePerHour), ignore)
			counts := map[int]int{}
			for range 8 {
				b, err := h.Invoke(t.Context(), payload)
				if err != nil {
					counts[0]++
					continue
				}
				counts[status(decode(t, b))]++
			}
			if way := path.Base(t.Name()); !httpEvents[name] {
				switch way {
				case "typed": // an authorizer's question has all of a request that the type has
					require.LessOrEqual(t, counts[200], 5, name)
				case "http":
					require.Equal(t, map[int]int{0: 8}, counts, name)
				case "raw":
					require.Zero(t, counts[429], name)
				}
			} else if counts[0] == 0 || name == e.file {
				require.Equal(t, map[int]int{200: 5, 429: 3}, counts, name)
			}
		}
	})
}

// What next answers stays, but for the fields that come to it.
func TestRawAnswers(t *testing.T) {
	const fields = `"Ratelimit":"\"test\";r=4;t=3600","Ratelimit-Policy":"\"test\";q=5;w=3600"`
	const lines = `"Ratelimit":["\"test\";r=4;t=3600"],"Ratelimit-Policy":["\"test\";q=5;w=3600"]`
	for _, tt := range []struct{ entry, answer, want string }{
		{"http api", `{"statusCode":200}`, `{"headers":{` + fields + `},"statusCode":200}`},
		{"function url", `{"statusCode":200,"body":"<\u0000&>","headers":null}`, `{"body":"<\u0000&>","headers":{` + fields + `},"statusCode":200}`},
		{"http api", `{"statusCode":200,"cookies":null,"multiValueHeaders":null}`, `{"cookies":[],"headers":{` + fields + `},"multiValueHeaders":{},"statusCode":200}`},
		{"http api", `{"statusCode":2e2,"odd":[1.0,{"a":null}],"cookies":["a=1","b=2"]}`, `{"cookies":["a=1","b=2"],"headers":{` + fields + `},"odd":[1.0,{"a":null}],"statusCode":2e2}`},
		{"rest api", `{"statusCode":200,"multiValueHeaders":{"ratelimit":["\"x\";r=1;t=1"]}}`, `{"headers":{"Ratelimit-Policy":"\"test\";q=5;w=3600"},"multiValueHeaders":{"ratelimit":["\"test\";r=4;t=3600, \"x\";r=1;t=1"]},"statusCode":200}`},
		{"alb", `{"statusCode":200,"headers":null,"multiValueHeaders":null,"statusDescription":"200 OK"}`, `{"headers":{` + fields + `},"multiValueHeaders":{},"statusCode":200,"statusDescription":"200 OK"}`},
		{"alb multi", `{"statusCode":200,"headers":null,"multiValueHeaders":null}`, `{"headers":{},"multiValueHeaders":{` + lines + `},"statusCode":200}`},
		// What has no headers, or odd ones, stays as it is.
		{"http api", ` {"message": "hello"}`, ` {"message": "hello"}`},
		{"http api", `{"statusCode":200,"headers":{"n":7}}`, `{"statusCode":200,"headers":{"n":7}}`},
		{"http api", `{"statusCode":200,"headers":[]}`, `{"statusCode":200,"headers":[]}`},
		{"http api", `"text"`, `"text"`},
		{"http api", `null`, `null`},
		{"http api", ``, ``},
		{"http api", `no json`, `no json`},
	} {
		h := lambda.Raw(newGuard(t, fivePerHour), handlerFunc(func(context.Context, []byte) ([]byte, error) {
			return []byte(tt.answer), nil
		}))
		e := byName(tt.entry)
		b, err := h.Invoke(t.Context(), encode(t, e.from(awsEvent(t, e.file), "203.0.113.9", "1.1.1.1")))
		require.NoError(t, err)
		require.Equal(t, tt.want, string(b), "%s %s", tt.entry, tt.answer)
	}
}

// An error of next passes through with its answer, and counts.
func TestRawErrors(t *testing.T) {
	own := errors.New("the user's own")
	h := lambda.Raw(newGuard(t, fivePerHour), handlerFunc(func(context.Context, []byte) ([]byte, error) {
		return []byte(`{"statusCode":500}`), own
	}))
	for i := range 6 {
		b, err := h.Invoke(t.Context(), visit(t, "203.0.113.9", "/"))
		if i == 5 {
			require.NoError(t, err)
			require.Equal(t, 429, status(decode(t, b)))
			continue
		}
		require.Same(t, own, err)
		require.Equal(t, `{"statusCode":500}`, string(b))
	}
	_, err := lambda.Raw(newGuard(t, fivePerHour), nil).Invoke(t.Context(), []byte(`{}`))
	require.Error(t, err)
}

// The bytes of NewHandler are those of its next answer too. Raw hands on its own.
func TestRawAroundNewHandler(t *testing.T) {
	type in = events.APIGatewayV2HTTPRequest
	inner := awslambda.NewHandler(func(_ context.Context, ev in) (any, error) {
		return map[string]string{"path": ev.RawPath, "fill": strings.Repeat("x", 100)}, nil
	})
	h := lambda.Raw(newGuard(t, fivePerHour), inner)
	first, err := h.Invoke(t.Context(), visit(t, "203.0.113.9", "/first"))
	require.NoError(t, err)
	pass, err := h.Invoke(t.Context(), []byte(`{"rawPath":"/pass"}`))
	require.NoError(t, err)
	for i := range 100 { // whoever takes the buffer from the pool writes over it
		_, err := inner.Invoke(t.Context(), visit(t, "203.0.113.9", fmt.Sprint("/other", i)))
		require.NoError(t, err)
	}
	require.Contains(t, string(first), `"/first"`)
	require.Contains(t, string(pass), `"/pass"`)
}

// In the runtime's own loops: one at a time NewHandler will do, several at once need a
// Handler whose answers are its own, and the error says so.
func TestRawInTheRuntime(t *testing.T) {
	for name, served := range map[string]map[int]int{
		"raw typed 1": {200: 5, 429: 35},
		"raw typed 8": {},
		"raw own 8":   {200: 5, 429: 35},
	} {
		t.Run(name, func(t *testing.T) {
			concurrency := int(name[len(name)-1] - '0')
			api := startFunction(t, name[:len(name)-2], concurrency)
			var mu sync.Mutex
			counts := map[int]int{}
			failures := 0
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 5 {
						r, err := api.invoke(visit(t, "203.0.113.9", "/"))
						if err != nil {
							return // the counts tell
						}
						mu.Lock()
						var answer object
						if r.failed {
							failures++
						} else if json.Unmarshal(r.body, &answer) == nil {
							counts[status(answer)]++
						}
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			require.Equal(t, served, counts)
			require.Equal(t, 40-served[200]-served[429], failures)
		})
	}
}
