package apiproxy

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

func guarded(t testing.TB) http.Handler {
	counters, err := memory.New(memory.Config{})
	require.NoError(t, err)
	guard, err := handler.New(handler.Config{
		Store:    counters,
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{{Name: "api", Limit: stores.FixedWindow(5, time.Minute), Key: handler.ByIP()}},
	})
	require.NoError(t, err)
	return guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "Hello.")
	}))
}

// What a client writes into his headers buys nothing, whichever event brings them.
var forged = map[string]string{"X-Forwarded-For": "192.0.2.%d", "X-Real-Ip": "192.0.2.%d", "Forwarded": "for=192.0.2.%d"}

func headers(i int) map[string]string {
	h := make(map[string]string)
	for name, value := range forged {
		h[name] = fmt.Sprintf(value, i)
	}
	return h
}

func TestRESTAPI(t *testing.T) {
	adapter := httpadapter.New(guarded(t))
	ask := func(i int, client string) events.APIGatewayProxyResponse {
		var event events.APIGatewayProxyRequest
		event.HTTPMethod, event.Path, event.Headers = "GET", "/", headers(i)
		event.RequestContext.Identity.SourceIP = client
		answer, err := adapter.ProxyWithContext(t.Context(), event)
		require.NoError(t, err)
		return answer
	}
	for i := range 8 {
		answer := ask(i, "203.0.113.9")
		if i < 5 {
			require.Equal(t, http.StatusOK, answer.StatusCode)
			continue
		}
		require.Equal(t, http.StatusTooManyRequests, answer.StatusCode)
		require.NotEmpty(t, http.Header(answer.MultiValueHeaders).Get("Retry-After"))
	}
	require.Equal(t, http.StatusOK, ask(0, "203.0.113.10").StatusCode)
}

func TestHTTPAPI(t *testing.T) {
	adapter := httpadapter.NewV2(guarded(t))
	ask := func(i int, client string) events.APIGatewayV2HTTPResponse {
		var event events.APIGatewayV2HTTPRequest
		event.RawPath, event.Headers = "/", headers(i)
		event.RequestContext.HTTP.Method, event.RequestContext.HTTP.Path = "GET", "/"
		event.RequestContext.HTTP.SourceIP = client
		answer, err := adapter.ProxyWithContext(t.Context(), event)
		require.NoError(t, err)
		return answer
	}
	for i := range 8 {
		answer := ask(i, "203.0.113.9")
		if i < 5 {
			require.Equal(t, http.StatusOK, answer.StatusCode)
			continue
		}
		require.Equal(t, http.StatusTooManyRequests, answer.StatusCode)
		require.NotEmpty(t, answer.Headers["Retry-After"])
	}
	require.Equal(t, http.StatusOK, ask(0, "203.0.113.10").StatusCode)
}
