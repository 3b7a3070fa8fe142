package lambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdaurl"
	"github.com/stretchr/testify/require"
)

// A Function URL whose InvokeMode is RESPONSE_STREAM: the guard stands inside, around
// the http.Handler.
func Example_streaming() {
	function := lambdaurl.Wrap(exampleGuard().Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "a long answer")
	})))
	// lambdaurl.Start(guard.Handler(mux))

	ev := events.LambdaFunctionURLRequest{RawPath: "/"}
	ev.RequestContext.HTTP.Method = "GET"
	ev.RequestContext.HTTP.SourceIP = "203.0.113.9"
	for range 3 {
		resp, err := function(context.Background(), &ev)
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(resp)
		fmt.Println(resp.StatusCode, strings.Contains(string(body), "a long answer"), err)
	}
	// Output:
	// 200 true <nil>
	// 200 true <nil>
	// 429 false <nil>
}

// Behind aws-lambda-go's own streaming adapter, whose RemoteAddr has no port: five
// answers for each address, whatever X-Forwarded-For claims.
func TestGuardInsideStreaming(t *testing.T) {
	var payload = encode(t, awsEvent(t, "lambda-urls-request.json"))
	function := lambdaurl.Wrap(newGuard(t, fivePerHour).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(w, r.Body)
		require.NoError(t, err)
	})))
	visit := func(addr, claim string) (int, http.Header, string) {
		var ev events.LambdaFunctionURLRequest
		require.NoError(t, json.Unmarshal(payload, &ev))
		ev.RequestContext.HTTP.SourceIP = addr
		ev.RequestContext.DomainName = "id.lambda-url.us-west-2.on.aws"
		ev.Headers["x-forwarded-for"] = claim
		resp, err := function(t.Context(), &ev)
		require.NoError(t, err)
		stream, err := io.ReadAll(resp)
		require.NoError(t, err)
		// The status and headers in JSON, eight zero bytes, the body.
		prelude, body, found := strings.Cut(string(stream), strings.Repeat("\x00", 8))
		require.True(t, found)
		require.True(t, json.Valid([]byte(prelude)), prelude)
		h := http.Header{}
		for name, value := range resp.Headers {
			h.Set(name, value)
		}
		return resp.StatusCode, h, body
	}
	for i := range 20 {
		status, h, body := visit("203.0.113.9", fmt.Sprintf("198.51.100.%d", i))
		require.Equal(t, `"test";q=5;w=3600`, h.Get("RateLimit-Policy"))
		if i < 5 {
			require.Equal(t, 200, status)
			require.Equal(t, "Hello from client!", body)
			continue
		}
		require.Equal(t, 429, status)
		require.NotEmpty(t, h.Get("Retry-After"))
		require.Contains(t, body, "quota-exceeded")
	}
	status, _, _ := visit("198.51.100.1", "203.0.113.9")
	require.Equal(t, 200, status)

	// Spellings of the address are one client.
	for i := range 6 {
		status, _, _ := visit([]string{"2001:db8::1", "2001:DB8:0::2"}[i%2], "")
		require.Equal(t, i < 5, status == 200)
	}
	require.NotPanics(t, func() { visit("", "") })
}
