package lambda_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
)

// noRequests are events that are no HTTP requests.
var noRequests = map[string][]byte{
	"empty":       []byte(`{}`),
	"null":        []byte(`null`),
	"list":        []byte(`[]`),
	"text":        []byte(`"ping"`),
	"number":      []byte(`7`),
	"warm-up":     []byte(`{"source":"warmup","warmer":true}`),
	"eventbridge": []byte(`{"version":"0","id":"x","detail-type":"Scheduled Event","source":"aws.events","detail":{}}`),
	"sqs":         []byte(`{"Records":[{"eventSource":"aws:sqs","body":"{}"}]}`),
	"websocket":   []byte(`{"requestContext":{"routeKey":"$default","connectionId":"abc=","eventType":"MESSAGE","identity":{"sourceIp":"203.0.113.9"}},"body":"x","isBase64Encoded":false}`),
	"no method":   []byte(`{"version":"2.0","requestContext":{"http":{}}}`),
	"odd types":   []byte(`{"version":2,"httpMethod":{},"headers":[],"body":{"a":1},"requestContext":"x"}`),
}

// What is no HTTP request is a clear error, again and again, and costs nothing.
func TestEventsThatAreNotHTTP(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		store := newCounting(t)
		g := newGuard(t, fivePerHour, func(cfg *handler.Config) { cfg.Store = store })
		ran := false
		h := wrap(g, func(context.Context, any) { ran = true })
		for name, payload := range noRequests {
			for range 100 {
				b, err := h.Invoke(t.Context(), payload)
				require.Error(t, err, "%s: %s", name, b)
			}
		}
		require.False(t, ran)
		require.Zero(t, store.takes.Load())

		// And nothing of that was counted against a visitor without an address.
		require.Equal(t, 200, status(invoke(t, h, e.from(awsEvent(t, e.file), "", ""))))
	})
}

// Every example event that aws-lambda-go has is taken for what it is.
func TestEveryExampleEvent(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(awsEvents(), "*.json"))
	require.NoError(t, err)
	require.Greater(t, len(files), 50)
	h := plain(newGuard(t, fivePerHour), ignore)
	seen := 0
	for _, file := range files {
		payload, err := os.ReadFile(file)
		require.NoError(t, err)
		b, err := h.Invoke(t.Context(), payload)
		name := filepath.Base(file)
		if !httpEvents[name] {
			require.Error(t, err, name)
			continue
		}
		require.NoError(t, err, name)
		require.Contains(t, []int{200, 429}, status(decode(t, b)), name)
		seen++
	}
	require.Equal(t, len(httpEvents), seen, "examples that are gone")
}

// The health check of a load balancer, as its manual shows it, is not counted; what
// looks a bit like one is.
func TestHealthCheckOfALoadBalancer(t *testing.T) {
	check := func() object {
		return object{
			"requestContext":        object{"elb": object{"targetGroupArn": "arn:aws:elasticloadbalancing:region:123456789012:targetgroup/my-target-group/6d0ecf831eec9f09"}},
			"httpMethod":            "GET",
			"path":                  "/",
			"queryStringParameters": object{},
			"headers":               object{"user-agent": "ELB-HealthChecker/2.0"},
			"body":                  "",
			"isBase64Encoded":       false,
		}
	}
	alb := entries()[3]
	for way, wrap := range map[string]func(*handler.Guard, func(context.Context, any)) awslambda.Handler{"typed": alb.typed, "raw": raw(t, alb)} {
		t.Run(way, func(t *testing.T) {
			store := newCounting(t)
			h := wrap(newGuard(t, fivePerHour, func(cfg *handler.Config) { cfg.Store = store }), ignore)
			for range 100 {
				require.Equal(t, 200, status(invoke(t, h, check())))
				multi := put(check(), "multiValueHeaders", object{"user-agent": []string{"ELB-HealthChecker/2.0"}})
				delete(multi, "headers")
				require.Equal(t, 200, status(invoke(t, h, multi)))
			}
			require.Zero(t, store.takes.Load())

			for name, forge := range map[string]func() object{
				"a header too many":       func() object { return put(check(), "headers.x-amzn-trace-id", "Root=1") },
				"an address":              func() object { return put(check(), "headers.x-forwarded-for", "203.0.113.9") },
				"another client":          func() object { return put(check(), "headers", object{"user-agent": "curl/8"}) },
				"another name":            func() object { return put(check(), "headers", object{"x-agent": "ELB-HealthChecker/2.0"}) },
				"no header at all":        func() object { return put(check(), "headers", object{}) },
				"the name further behind": func() object { return put(check(), "headers", object{"user-agent": "x ELB-HealthChecker/2.0"}) },
			} {
				before := store.takes.Load()
				invoke(t, h, forge())
				require.Equal(t, before+1, store.takes.Load(), name)
				h = wrap(newGuard(t, fivePerHour, func(cfg *handler.Config) { cfg.Store = store }), ignore)
			}
		})
	}
}
