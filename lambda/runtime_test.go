package lambda_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
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

// functionEnv names the Lambda function that a child process of the tests is.
const functionEnv = "SALLYPORT_TEST_FUNCTION"

func TestMain(m *testing.M) {
	if name := os.Getenv(functionEnv); name != "" {
		runFunction(name) // does not return
	}
	os.Exit(m.Run())
}

// runFunction is the main of a function: five requests an hour for each address.
func runFunction(name string) {
	m, err := memory.New(memory.Config{})
	if err != nil {
		panic(err)
	}
	g, err := handler.New(handler.Config{
		Store:    m,
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{{Name: "test", Limit: stores.FixedWindow(5, time.Hour), Key: handler.ByIP()}},
	})
	if err != nil {
		panic(err)
	}
	if name == "typed" {
		lambda.Start(lambda.HTTPAPI(g, func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
			switch ev.RawPath {
			case "/error":
				return events.APIGatewayV2HTTPResponse{}, errors.New("the user's own")
			case "/panic":
				panic("the user's own")
			}
			return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: "hello"}, nil
		}))
	}
	hello := func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: "hello"}, nil
	}
	switch name {
	case "raw typed":
		lambda.Start(lambda.Raw(g, awslambda.NewHandler(hello)))
	case "raw own":
		lambda.Start(lambda.Raw(g, typed[events.APIGatewayV2HTTPRequest, events.APIGatewayV2HTTPResponse](hello)))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	mux.HandleFunc("/error", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic("the user's own") })
	lambda.Start(lambda.HTTP(g.Handler(mux)))
}

// runtimeAPI is Lambda's side of a function: it hands out invocations and takes what
// becomes of them.
type runtimeAPI struct {
	server  *httptest.Server
	queue   chan *invocation
	pending sync.Map // id to *invocation
	ids     atomic.Int64
	exited  chan struct{}
}

type invocation struct {
	id      string
	payload []byte
	result  chan result
}

type result struct {
	body   []byte
	failed bool
}

// startFunction runs a function in a process of its own.
func startFunction(t *testing.T, name string, concurrency int) *runtimeAPI {
	api := &runtimeAPI{queue: make(chan *invocation), exited: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case in := <-api.queue:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", in.id)
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10))
			w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-central-1:123456789012:function:test")
			_, _ = w.Write(in.payload)
		case <-r.Context().Done():
		}
	})
	finish := func(failed bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if in, ok := api.pending.LoadAndDelete(r.PathValue("id")); ok {
				in.(*invocation).result <- result{body, failed}
			}
			w.WriteHeader(http.StatusAccepted)
		}
	}
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", finish(false))
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", finish(true))
	api.server = httptest.NewServer(mux)

	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), functionEnv+"="+name, "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.server.URL, "http://"),
		"AWS_LAMBDA_MAX_CONCURRENCY="+strconv.Itoa(concurrency))
	require.NoError(t, cmd.Start())
	go func() {
		_ = cmd.Wait()
		close(api.exited)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-api.exited
		api.server.CloseClientConnections()
		api.server.Close()
	})
	return api
}

// invoke runs one invocation; an error if the function is gone.
func (api *runtimeAPI) invoke(payload []byte) (result, error) {
	in := &invocation{id: strconv.FormatInt(api.ids.Add(1), 10), payload: payload, result: make(chan result, 1)}
	api.pending.Store(in.id, in)
	select {
	case api.queue <- in:
	case <-api.exited:
		return result{}, errors.New("the function has exited")
	}
	select {
	case r := <-in.result:
		return r, nil
	case <-api.exited:
		return result{}, errors.New("the function has exited")
	}
}

func visit(t *testing.T, addr, path string) []byte {
	ev := awsEvent(t, "apigw-v2-request-no-authorizer.json")
	return encode(t, put(put(ev, "requestContext.http.sourceIp", addr), "rawPath", path))
}

// The real loop of aws-lambda-go: five are served and the rest refused, and nothing
// that a client or an operator sends in between makes the function forget.
func TestRuntimeLoop(t *testing.T) {
	for _, name := range []string{"typed", "http"} {
		t.Run(name, func(t *testing.T) {
			api := startFunction(t, name, 1)
			for i := range 20 {
				r, err := api.invoke(visit(t, "203.0.113.9", fmt.Sprintf("/x%d", i)))
				require.NoError(t, err)
				require.False(t, r.failed, "%s", r.body)
				answer := decode(t, r.body)
				if i < 5 {
					require.Equal(t, 200, status(answer))
					require.Equal(t, "hello", answer["body"])
				} else {
					require.Equal(t, 429, status(answer))
					require.NotEmpty(t, entries()[0].one(t, answer, "Retry-After"))
				}
			}
			for _, payload := range [][]byte{[]byte(`{}`), []byte(`null`), []byte(`{"Records":[]}`), visit(t, "198.51.100.1", "/error")} {
				r, err := api.invoke(payload)
				require.NoError(t, err)
				require.True(t, r.failed)
				require.NotContains(t, string(r.body), "198.51.100.1")
			}
			r, err := api.invoke(visit(t, "203.0.113.9", "/"))
			require.NoError(t, err)
			require.Equal(t, 429, status(decode(t, r.body)), "the offender is still limited")
			r, err = api.invoke(visit(t, "198.51.100.1", "/"))
			require.NoError(t, err)
			require.Equal(t, 200, status(decode(t, r.body)), "others are still served")

			// A panic of the user's handler is Lambda's to see.
			r, err = api.invoke(visit(t, "198.51.100.2", "/panic"))
			require.NoError(t, err)
			require.True(t, r.failed)
			require.Contains(t, string(r.body), "the user's own")
			<-api.exited
		})
	}
}

// Several loops in one process, as on managed instances.
func TestRuntimeLoopsInParallel(t *testing.T) {
	for _, name := range []string{"typed", "http"} {
		t.Run(name, func(t *testing.T) {
			api := startFunction(t, name, 8)
			payload := visit(t, "203.0.113.9", "/")
			results := make(chan result, 100)
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					if r, err := api.invoke(payload); err == nil {
						results <- r
					}
				})
			}
			wg.Wait()
			close(results)
			counts := map[int]int{}
			for r := range results {
				require.False(t, r.failed, "%s", r.body)
				counts[status(decode(t, r.body))]++
			}
			require.Equal(t, map[int]int{200: 5, 429: 95}, counts)
		})
	}
}
