package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler/webhook"
	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/lambda"
)

const secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

var ids atomic.Int64

func newID() string { return fmt.Sprint("msg_", ids.Add(1)) }

func mac(key, text string) []byte {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(text))
	return m.Sum(nil)
}

// standard are the headers of a delivery by Standard Webhooks, in lower case, as an HTTP
// API sends them.
func standard(secret, id, body string) map[string]string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic(err)
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	return map[string]string{
		"webhook-id": id, "webhook-timestamp": stamp,
		"webhook-signature": "v1," + base64.StdEncoding.EncodeToString(mac(string(key), id+"."+stamp+"."+body)),
	}
}

// delivered is an event that aws-lambda-go ships, made a delivery of this body.
func delivered(t testing.TB, id, body string) events.APIGatewayV2HTTPRequest {
	t.Helper()
	var event events.APIGatewayV2HTTPRequest
	shipped(t, "apigw-v2-request-no-authorizer.json", &event)
	event.RequestContext.HTTP.Method = "POST"
	for name, value := range standard(secret, id, body) {
		event.Headers[name] = value
	}
	event.Body = body
	return event
}

func shipped(t testing.TB, name string, event any) {
	t.Helper()
	dir, err := module()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "events", "testdata", name))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, event))
}

// module is the folder of aws-lambda-go.
var module = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-lambda-go").Output()
	return strings.TrimSpace(string(out)), err
})

// recorder is an Inbox that keeps what it gets, or fails.
type recorder struct {
	err error
	got []webhook.Delivery
}

func (in *recorder) Keep(_ context.Context, d webhook.Delivery) error {
	in.got = append(in.got, d)
	return in.err
}

// program is what the environment makes of main, with an inbox to look into.
func program(t *testing.T, env ...string) (invoke func(event any) events.APIGatewayV2HTTPResponse, inbox *recorder) {
	t.Helper()
	inbox = &recorder{}
	for _, name := range []string{"SALLYPORT_WEBHOOK_SCHEME", "SALLYPORT_WEBHOOK_SECRET_NEXT", "SALLYPORT_LIMIT", "SALLYPORT_INSTANCES", "SALLYPORT_TABLE", "KV_REST_API_URL", "KV_REST_API_TOKEN"} {
		t.Setenv(name, "")
	}
	for _, variable := range append(upstashEnv(upstashtest.New(t)), env...) {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	receiver, err := newReceiver(inbox)
	require.NoError(t, err)
	function := lambda.HTTP(receiver)
	return func(event any) events.APIGatewayV2HTTPResponse {
		t.Helper()
		text, err := json.Marshal(event)
		require.NoError(t, err)
		answer, err := function.Invoke(t.Context(), text)
		require.NoError(t, err)
		var response events.APIGatewayV2HTTPResponse
		require.NoError(t, json.Unmarshal(answer, &response))
		return response
	}, inbox
}

func TestReceive(t *testing.T) {
	encoded := func(e *events.APIGatewayV2HTTPRequest) {
		e.Body, e.IsBase64Encoded = base64.StdEncoding.EncodeToString([]byte(e.Body)), true
	}
	largest := strings.Repeat("x", maxBody)
	tests := []struct {
		name, body string
		change     func(e *events.APIGatewayV2HTTPRequest)
		status     int
	}{
		{"JSON", ` {"a": [1, 2]} `, func(*events.APIGatewayV2HTTPRequest) {}, 200},
		{"a form", "a=1&b=%20", func(e *events.APIGatewayV2HTTPRequest) {
			e.Headers["content-type"] = "application/x-www-form-urlencoded"
		}, 200},
		{"bytes in base64", "\xff\x00", encoded, 200},
		{"nothing", "", func(*events.APIGatewayV2HTTPRequest) {}, 200},
		{"largest", largest, func(*events.APIGatewayV2HTTPRequest) {}, 200},
		{"largest in base64", largest, encoded, 200},
		{"too large", largest + "x", func(*events.APIGatewayV2HTTPRequest) {}, 413},
		{"too large in base64", largest + "x", encoded, 413},
		{"no base64", "{}", func(e *events.APIGatewayV2HTTPRequest) { e.IsBase64Encoded = true }, 400},
		{"GET", "{}", func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.Method = "GET" }, 405},
		{"no headers", "{}", func(e *events.APIGatewayV2HTTPRequest) { e.Headers = nil }, 401},
		{"another body", "{}", func(e *events.APIGatewayV2HTTPRequest) { e.Body = "{ }" }, 401},
		{"another id", "{}", func(e *events.APIGatewayV2HTTPRequest) { e.Headers["webhook-id"] = "msg" }, 401},
		{"doubled header", "{}", func(e *events.APIGatewayV2HTTPRequest) { e.Headers["webhook-id"] += "," + e.Headers["webhook-id"] }, 401},
		{"two spellings", "{}", func(e *events.APIGatewayV2HTTPRequest) { e.Headers["Webhook-Id"] = e.Headers["webhook-id"] }, 401},
	}
	invoke, inbox := program(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inbox.got = nil
			id := newID()
			event := delivered(t, id, test.body)
			test.change(&event)
			response := invoke(event)
			require.Equal(t, test.status, response.StatusCode, response.Body)
			if test.status == 200 {
				require.Equal(t, "no-store", response.Headers["Cache-Control"])
				require.Len(t, inbox.got, 1)
				require.Equal(t, test.body, string(inbox.got[0].Body))
				require.Equal(t, id, inbox.got[0].ID)
				require.Equal(t, 200, invoke(event).StatusCode)
				require.Len(t, inbox.got, 1, "what came again is not kept again")
				return
			}
			require.Empty(t, inbox.got)
			require.NotEmpty(t, response.Body)
		})
	}
}

func TestSchemes(t *testing.T) {
	const body = `{"id":"evt_1","event_id":"Ev1"}`
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	of := func(text string) string { return hex.EncodeToString(mac("a secret", text)) }
	sum := sha256.Sum256([]byte(body))
	digest := hex.EncodeToString(sum[:])
	tests := map[string]struct {
		headers map[string]string
		id      string
	}{
		"stripe":           {map[string]string{"stripe-signature": "t=" + stamp + ",v1=" + of(stamp+"."+body)}, "evt_1"},
		"github":           {map[string]string{"x-hub-signature-256": "sha256=" + of(body)}, digest},
		"slack":            {map[string]string{"x-slack-request-timestamp": stamp, "x-slack-signature": "v0=" + of("v0:"+stamp+":"+body)}, "Ev1"},
		"hmac:X-Signature": {map[string]string{"x-signature": of(body)}, digest},
	}
	for scheme, test := range tests {
		t.Run(scheme, func(t *testing.T) {
			for _, secrets := range [][]string{
				{"SALLYPORT_WEBHOOK_SECRET=a secret"},
				{"SALLYPORT_WEBHOOK_SECRET=another", "SALLYPORT_WEBHOOK_SECRET_NEXT=a secret"},
			} {
				invoke, inbox := program(t, append(secrets, "SALLYPORT_WEBHOOK_SCHEME="+scheme)...)
				event := delivered(t, newID(), body)
				require.Equal(t, 401, invoke(event).StatusCode, "signed in another way")
				event.Headers = test.headers
				require.Equal(t, 200, invoke(event).StatusCode)
				require.Len(t, inbox.got, 1)
				require.Equal(t, test.id, inbox.got[0].ID)
			}
		})
	}
}

// The same program behind the other kinds of address.
func TestOtherEvents(t *testing.T) {
	const body = `{"type":"ping"}`
	invoke, inbox := program(t)
	headers := func() map[string]string { return standard(secret, newID(), body) }

	var url events.LambdaFunctionURLRequest
	shipped(t, "lambda-urls-request.json", &url)
	url.RequestContext.HTTP.Method, url.Headers, url.Body, url.IsBase64Encoded = "POST", headers(), body, false
	require.Equal(t, 200, invoke(url).StatusCode)

	var rest events.APIGatewayProxyRequest
	shipped(t, "apigw-request.json", &rest)
	rest.HTTPMethod, rest.Body, rest.IsBase64Encoded = "POST", body, false
	rest.Headers, rest.MultiValueHeaders = headers(), nil
	require.Equal(t, 200, invoke(rest).StatusCode)
	require.Equal(t, 200, invoke(rest).StatusCode)

	var balancer events.ALBTargetGroupRequest
	shipped(t, "alb-lambda-target-request-headers-only.json", &balancer)
	balancer.HTTPMethod, balancer.Body, balancer.IsBase64Encoded = "POST", body, false
	balancer.Headers, balancer.MultiValueHeaders = headers(), nil
	require.Equal(t, 200, invoke(balancer).StatusCode)

	require.Len(t, inbox.got, 3)
	for _, d := range inbox.got {
		require.Equal(t, body, string(d.Body))
	}
}

// An inbox that fails is the sender's cue to try again, and no secret of his.
func TestInboxFails(t *testing.T) {
	var log strings.Builder
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(was)
	invoke, inbox := program(t)
	inbox.err = errors.New("queue at 10.0.0.1 is full")
	event := delivered(t, newID(), "{}")
	for range 3 {
		response := invoke(event)
		require.Equal(t, 500, response.StatusCode)
		require.NotContains(t, response.Body, "10.0.0.1")
	}
	require.NotContains(t, log.String(), "10.0.0.1")
	require.Contains(t, log.String(), "could not be kept")
	inbox.err = nil
	require.Equal(t, 200, invoke(event).StatusCode)
	require.Len(t, inbox.got, 4)
}

func TestLogInboxKeepsNothing(t *testing.T) {
	var log strings.Builder
	in := logInbox{slog.New(slog.NewTextHandler(&log, nil))}
	require.NoError(t, in.Keep(t.Context(), webhook.Delivery{ID: "msg_1", Body: []byte(`{"secret":1}`)}))
	require.Contains(t, log.String(), "bytes=12")
	require.Contains(t, log.String(), "was not kept")
	require.NotContains(t, log.String(), "secret")
}

// Only the address that the gateway reports tells who delivers.
func TestLimit(t *testing.T) {
	invoke, inbox := program(t, "SALLYPORT_LIMIT=5/1h")
	for i := range 20 {
		event := delivered(t, newID(), "{}")
		event.Headers["x-forwarded-for"] = "203.0.113." + strconv.Itoa(i)
		response := invoke(event)
		if i < 5 {
			require.Equal(t, 200, response.StatusCode)
			continue
		}
		require.Equal(t, 429, response.StatusCode)
		require.NotEmpty(t, response.Headers["Retry-After"])
	}
	event := delivered(t, newID(), "{}")
	event.RequestContext.HTTP.SourceIP = "203.0.113.1" // whom the flood pretended to be
	require.Equal(t, 200, invoke(event).StatusCode)
	require.Len(t, inbox.got, 6)
}
