package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/lambda"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// recorder is an Inbox that keeps what it gets, or fails.
type recorder struct {
	err error
	got []string
}

func (in *recorder) Keep(_ context.Context, payload json.RawMessage) (string, error) {
	in.got = append(in.got, string(payload))
	return "Kept.", in.err
}

// delivered is an event that aws-lambda-go ships, made a delivery of this body.
func delivered(t testing.TB, body string) events.APIGatewayV2HTTPRequest {
	t.Helper()
	dir, err := module()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "events", "testdata", "apigw-v2-request-no-authorizer.json"))
	require.NoError(t, err)
	var event events.APIGatewayV2HTTPRequest
	require.NoError(t, json.Unmarshal(text, &event))
	event.RequestContext.HTTP.Method = "POST"
	event.Headers["content-type"] = "application/json"
	event.Body = body
	return event
}

// module is the folder of aws-lambda-go.
var module = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-lambda-go").Output()
	return strings.TrimSpace(string(out)), err
})

func TestReceive(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString
	largest := `"` + strings.Repeat("x", maxPayload-2) + `"`
	tests := []struct {
		name   string
		change func(e *events.APIGatewayV2HTTPRequest)
		status int
		got    string
	}{
		{"an object", func(e *events.APIGatewayV2HTTPRequest) { e.Body = ` {"a": [1, 2]} ` }, 202, ` {"a": [1, 2]} `},
		{"a scalar", func(e *events.APIGatewayV2HTTPRequest) { e.Body = "null" }, 202, "null"},
		{"base64", func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = encoded([]byte(`{"a":1}`)), true }, 202, `{"a":1}`},
		{"charset", func(e *events.APIGatewayV2HTTPRequest) { e.Headers["content-type"] = "Application/JSON; charset=utf-8" }, 202, `{"a":1}`},
		{"CloudEvents", func(e *events.APIGatewayV2HTTPRequest) { e.Headers["content-type"] = "application/cloudevents+json" }, 202, `{"a":1}`},
		{"largest", func(e *events.APIGatewayV2HTTPRequest) { e.Body = largest }, 202, largest},
		{"largest in base64", func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = encoded([]byte(largest)), true }, 202, largest},
		{"GET", func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = "GET" }, 405, ""},
		{"no type", func(e *events.APIGatewayV2HTTPRequest) { delete(e.Headers, "content-type") }, 415, ""},
		{"a form", func(e *events.APIGatewayV2HTTPRequest) {
			e.Headers["content-type"] = "application/x-www-form-urlencoded"
		}, 415, ""},
		{"text", func(e *events.APIGatewayV2HTTPRequest) { e.Headers["content-type"] = "text/json" }, 415, ""},
		{"two types", func(e *events.APIGatewayV2HTTPRequest) { e.Headers["content-type"] = "application/json,text/plain" }, 415, ""},
		{"no headers", func(e *events.APIGatewayV2HTTPRequest) { e.Headers = nil }, 415, ""},
		{"nothing", func(e *events.APIGatewayV2HTTPRequest) { e.Body = "" }, 400, ""},
		{"half an object", func(e *events.APIGatewayV2HTTPRequest) { e.Body = `{"a":` }, 400, ""},
		{"two objects", func(e *events.APIGatewayV2HTTPRequest) { e.Body = `{}{}` }, 400, ""},
		{"deep", func(e *events.APIGatewayV2HTTPRequest) { e.Body = strings.Repeat("[", 100_000) }, 400, ""},
		{"no UTF-8", func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = encoded([]byte("\"\xff\"")), true }, 400, ""},
		{"no base64", func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = "{}", true }, 400, ""},
		{"too large", func(e *events.APIGatewayV2HTTPRequest) { e.Body = largest + " " }, 413, ""},
		{"too large in base64", func(e *events.APIGatewayV2HTTPRequest) {
			e.Body, e.IsBase64Encoded = encoded([]byte(largest+" ")), true
		}, 413, ""},
		{"far too large", func(e *events.APIGatewayV2HTTPRequest) {
			e.Body, e.IsBase64Encoded = strings.Repeat("A", 6<<20), true
		}, 413, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			event := delivered(t, `{"a":1}`)
			test.change(&event)
			inbox := &recorder{}
			response, err := receiver{inbox}.receive(t.Context(), event)
			require.NoError(t, err)
			require.Equal(t, test.status, response.StatusCode)
			require.Equal(t, "no-store", response.Headers["cache-control"])
			var body struct {
				Status any
				Title  string
				Detail string
				Bytes  int
			}
			require.NoError(t, json.Unmarshal([]byte(response.Body), &body))
			if test.status == 202 {
				require.Equal(t, []string{test.got}, inbox.got)
				require.Equal(t, "application/json", response.Headers["content-type"])
				require.Equal(t, "accepted", body.Status)
				require.Equal(t, len(test.got), body.Bytes)
				require.Equal(t, "Kept.", body.Detail)
				return
			}
			require.Empty(t, inbox.got)
			require.Equal(t, "application/problem+json", response.Headers["content-type"])
			require.EqualValues(t, test.status, body.Status)
			require.NotEmpty(t, body.Title)
			require.NotEmpty(t, body.Detail)
			if test.status == 405 {
				require.Equal(t, "POST", response.Headers["allow"])
			}
			if test.status == 413 {
				require.Equal(t, 262144, maxPayload)
				require.Contains(t, body.Detail, "262144")
			}
		})
	}
}

// An inbox that fails is the sender's cue to try again, and no secret of his.
func TestInboxFails(t *testing.T) {
	response, err := receiver{&recorder{err: errors.New("queue at 10.0.0.1 is full")}}.receive(t.Context(), delivered(t, "{}"))
	require.NoError(t, err)
	require.Equal(t, 503, response.StatusCode)
	require.NotContains(t, response.Body, "10.0.0.1")
	require.NotContains(t, response.Body, "accepted")
}

func TestLogInboxKeepsNothing(t *testing.T) {
	var log strings.Builder
	response, err := receiver{logInbox{slog.New(slog.NewTextHandler(&log, nil))}}.receive(t.Context(), delivered(t, `{"secret":1}`))
	require.NoError(t, err)
	require.Equal(t, 202, response.StatusCode)
	require.Contains(t, response.Body, "it was not kept", "the answer says no more than was done")
	require.Contains(t, log.String(), "bytes=12")
	require.NotContains(t, log.String(), "secret")
}

// Whatever is posted counts, and only the address that API Gateway reports tells who
// posted it.
func TestGuardedReceive(t *testing.T) {
	store, err := memory.New(memory.Config{})
	require.NoError(t, err)
	guard, err := handler.New(handler.Config{
		Store:    store,
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{{Name: "webhook", Limit: stores.FixedWindow(5, time.Hour), Key: handler.ByIP()}},
	})
	require.NoError(t, err)
	function := lambda.HTTPAPI(guard, receiver{&recorder{}}.receive)
	bodies := []string{"{}", "bad", strings.Repeat("x", maxPayload+1), "[]", ""}
	for i := range 20 {
		event := delivered(t, bodies[i%len(bodies)])
		event.Headers["x-forwarded-for"] = "203.0.113." + string(rune('0'+i%10))
		response, err := function(t.Context(), event)
		require.NoError(t, err)
		want := []int{202, 400, 413, 202, 400}[i%5]
		if i >= 5 {
			want = 429
			require.Equal(t, "3600", response.Headers["Retry-After"])
		}
		require.Equal(t, want, response.StatusCode)
	}
	event := delivered(t, "{}")
	event.RequestContext.HTTP.SourceIP = "203.0.113.1" // whom the flood pretended to be
	response, err := function(t.Context(), event)
	require.NoError(t, err)
	require.Equal(t, 202, response.StatusCode)
}

func FuzzReceive(f *testing.F) {
	f.Add("POST", "application/json", `{"a":1}`, false)
	f.Add("POST", "application/json", "eyJhIjoxfQ==", true)
	f.Add("GET", "", "", false)
	f.Add("POST", "a/b;=", "\xff", true)
	f.Fuzz(func(t *testing.T, method, contentType, body string, isBase64 bool) {
		var event events.APIGatewayV2HTTPRequest
		event.RequestContext.HTTP.Method = method
		event.Headers = map[string]string{"content-type": contentType}
		event.Body, event.IsBase64Encoded = body, isBase64
		inbox := &recorder{}
		response, err := receiver{inbox}.receive(t.Context(), event)
		require.NoError(t, err)
		require.True(t, json.Valid([]byte(response.Body)))
		if response.StatusCode != 202 {
			require.Empty(t, inbox.got)
			return
		}
		require.Len(t, inbox.got, 1)
		require.True(t, json.Valid([]byte(inbox.got[0])))
		require.LessOrEqual(t, len(inbox.got[0]), maxPayload)
		if !isBase64 {
			require.Equal(t, body, inbox.got[0])
		}
	})
}
