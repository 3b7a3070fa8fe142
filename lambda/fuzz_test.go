package lambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/lambda"
	"github.com/sallyport/sallyport/stores"
)

// Whatever the payload, nothing panics, no answer holds a null, and the same payload
// never gets more than its quota.
func FuzzInvoke(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(awsEvents(), "*.json"))
	require.NoError(f, err)
	for _, file := range files {
		switch base := filepath.Base(file); base[:3] {
		case "api", "alb", "lam":
			b, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(b)
		}
	}
	f.Add([]byte(`{"version":"2.0","rawPath":"%","requestContext":{"stage":"%","http":{"method":"\u0000"}},"isBase64Encoded":true,"body":"="}`))
	f.Add([]byte(`{"httpMethod":"GET","headers":{"":"","\r\n":"x","X-Forwarded-For":",","x-forwarded-for":""},"requestContext":{"elb":{}}}`))
	f.Add([]byte(`{"httpMethod":"GET","resource":"/{a}/{b","pathParameters":{"a":"","b":"{a}"},"requestContext":{"identity":{}}}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		handlers := []awslambda.Handler{plain(newGuard(t, stores.Limit{Quota: 1, Window: fivePerHour.Window}), ignore)}
		for _, e := range entries() {
			handlers = append(handlers, e.typed(newGuard(t, stores.Limit{Quota: 1, Window: fivePerHour.Window}), ignore))
		}
		if _, err := handlers[0].Invoke(context.Background(), payload); err == nil {
			// What HTTP takes for a request, Raw counts.
			handlers[0] = plain(newGuard(t, stores.Limit{Quota: 1, Window: fivePerHour.Window}), ignore)
			handlers = append(handlers, lambda.Raw(newGuard(t, stores.Limit{Quota: 1, Window: fivePerHour.Window}), handlerFunc(func(context.Context, []byte) ([]byte, error) {
				return []byte(`{"statusCode":200,"headers":null}`), nil
			})))
		}
		for _, h := range handlers {
			passed := 0
			for range 3 {
				b, err := h.Invoke(context.Background(), payload)
				if err != nil {
					continue
				}
				answer := decode(t, b)
				switch status(answer) {
				case http.StatusOK:
					passed++
				case http.StatusTooManyRequests, http.StatusBadRequest:
				default:
					require.Fail(t, "odd status", "%s", b)
				}
			}
			if exemptByRule(payload) {
				continue
			}
			require.LessOrEqual(t, passed, 1)
		}
	})
}

// Whatever the handler behind Raw answers, nothing panics, what it said stays, and no
// map that a load balancer reads is null.
func FuzzRawAnswer(f *testing.F) {
	f.Add([]byte(`{"statusCode":200,"headers":{"a":"b","ratelimit":"\"x\";r=1"},"body":"\u0000<\ud800"}`))
	f.Add([]byte(`{"statusCode":200,"headers":null,"multiValueHeaders":{"a":null},"cookies":[null]}`))
	f.Add([]byte(`{"headers":{}}`))
	f.Add([]byte(` [1, {"statusCode":200}]`))
	type open = map[string]json.RawMessage
	var payloads [][]byte
	for _, e := range entries() {
		payloads = append(payloads, encode(f, e.from(awsEvent(f, e.file), "203.0.113.9", "")))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, payload := range payloads {
			h := lambda.Raw(newGuard(t, fivePerHour), handlerFunc(func(context.Context, []byte) ([]byte, error) {
				return bytes.Clone(answer), nil
			}))
			got, err := h.Invoke(context.Background(), payload)
			require.NoError(t, err)
			if bytes.Equal(answer, got) {
				continue
			}
			var before, after open
			require.NoError(t, json.Unmarshal(answer, &before))
			require.NoError(t, json.Unmarshal(got, &after))
			for name, value := range before {
				switch name {
				case "headers", "multiValueHeaders", "cookies":
					require.NotEqual(t, "null", string(after[name]), "%s", got)
				default:
					want := new(bytes.Buffer)
					require.NoError(t, json.Compact(want, value))
					require.Equal(t, want.String(), string(after[name]), name)
				}
			}
			require.Contains(t, string(got), `\"test\";r=4`)
		}
	})
}

// exemptByRule tells a preflight and the health check of a load balancer.
func exemptByRule(payload []byte) bool {
	var ev struct {
		HTTPMethod        string
		Headers           map[string]any
		MultiValueHeaders map[string]any
		RequestContext    struct{ HTTP struct{ Method string } }
	}
	_ = json.Unmarshal(payload, &ev)
	return ev.HTTPMethod == http.MethodOptions || ev.RequestContext.HTTP.Method == http.MethodOptions ||
		len(ev.Headers)+len(ev.MultiValueHeaders) == 1
}

// A chain of addresses is the load balancer's at its end and the client's before.
func FuzzLoadBalancerChain(f *testing.F) {
	f.Add("1.1.1.1, 2.2.2.2", "x")
	f.Add(",", "")
	f.Fuzz(func(t *testing.T, forged, agent string) {
		for _, e := range entries()[3:] {
			h := e.typed(newGuard(t, stores.Limit{Quota: 1, Window: fivePerHour.Window}, keyedBy(handler.ByIP())), ignore)
			for i := range 3 {
				ev := e.from(awsEvent(t, e.file), "203.0.113.9", forged)
				if i == 1 {
					ev = e.from(ev, "203.0.113.9", agent)
				}
				want := 200
				if i > 0 {
					want = 429
				}
				require.Equal(t, want, status(invoke(t, h, ev)))
			}
		}
	})
}
