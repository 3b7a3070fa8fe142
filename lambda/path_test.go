package lambda_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
)

const ownDomain = "id.execute-api.eu-central-1.amazonaws.com"

// Stage and base path are off, once.
func TestPaths(t *testing.T) {
	for _, c := range []struct {
		shape, route, path, stage, domain string
		params                            object
		want                              string
	}{
		// HTTP APIs: rawPath has the stage on the API's own domain.
		{"v2", "$default", "/login", "$default", ownDomain, nil, "/login"},
		{"v2", "$default", "/Prod/login", "Prod", ownDomain, nil, "/login"},
		{"v2", "$default", "/Prod/login", "Prod", "", nil, "/login"},
		{"v2", "$default", "/Prod", "Prod", ownDomain, nil, "/"},
		{"v2", "$default", "/Prod/", "Prod", ownDomain, nil, "/"},
		{"v2", "$default", "/Prod/Prod/login", "Prod", ownDomain, nil, "/Prod/login"},
		{"v2", "$default", "/Production/login", "Prod", ownDomain, nil, "/Production/login"},
		{"v2", "$default", "/prod/login", "Prod", ownDomain, nil, "/prod/login"},
		{"v2", "$default", "/Prod/login", "$default", ownDomain, nil, "/Prod/login"},
		{"v2", "$default", "/$default/login", "$default", ownDomain, nil, "/$default/login"},
		{"v2", "$default", "/Prod/login", "Prod", "api.example.com", nil, "/Prod/login"},
		{"v2", "$default", "", "$default", ownDomain, nil, "/"},
		{"v2", "GET /login", "/Prod/login", "Prod", ownDomain, nil, "/login"},
		{"v2", "GET /login", "/v2/login", "Prod", "api.example.com", nil, "/login"},
		{"v2", "ANY /agents/{proxy+}", "/dev/agents/1234/x", "dev", ownDomain, object{"proxy": "1234/x"}, "/agents/1234/x"},
		{"v2", "ANY /{proxy+}", "/v2/login", "Prod", "api.example.com", object{"proxy": "login"}, "/login"},
		{"v2", "ANY /{proxy+}", "/Prod/Prod/login", "Prod", ownDomain, object{"proxy": "Prod/login"}, "/Prod/login"},
		{"v2", "ANY /{proxy+}", "/Prod/login/", "Prod", ownDomain, object{"proxy": "login"}, "/login/"},
		{"v2", "ANY /", "/v2", "Prod", "api.example.com", nil, "/"},
		// A parameter that is not in the path as it stands: nothing is guessed.
		{"v2", "ANY /{proxy+}", "/Prod/a%2Fb", "Prod", ownDomain, object{"proxy": "a/b"}, "/a%2Fb"},
		{"v2", "ANY /{proxy+}", "/Prod/x", "Prod", ownDomain, nil, "/x"},
		{"v2", "ANY /{proxy+", "/Prod/x", "Prod", ownDomain, object{"proxy": "x"}, "/x"},
		// REST APIs: path has the base path of a custom domain, and no stage.
		{"v1", "/{proxy+}", "/login", "Prod", ownDomain, object{"proxy": "login"}, "/login"},
		{"v1", "/{proxy+}", "/v2/login", "Prod", "api.example.com", object{"proxy": "login"}, "/login"},
		{"v1", "/login", "/v2/login", "Prod", "api.example.com", nil, "/login"},
		{"v1", "/users/{id}/mails/{mail}", "/v2/users/7/mails/9", "Prod", "api.example.com", object{"id": "7", "mail": "9"}, "/users/7/mails/9"},
		{"v1", "/", "/v2", "Prod", "api.example.com", nil, "/"},
		{"v1", "/{proxy+}", "/v2/", "Prod", "api.example.com", object{"proxy": ""}, "/v2/"},
		{"v1", "/login", "/Prod", "Prod", ownDomain, nil, "/Prod"},
		{"v1", "", "/Prod/login", "Prod", ownDomain, nil, "/Prod/login"},
		// HTTP APIs with payload format 1.0: path has the stage.
		{"v1", "/test", "/dev/test", "dev", ownDomain, nil, "/test"},
		{"v1", "$default", "/dev/test", "dev", ownDomain, nil, "/test"},
		// Function URLs and load balancers put nothing before the path.
		{"url", "", "/Prod/login", "", "x.lambda-url.eu-central-1.on.aws", nil, "/Prod/login"},
		{"alb", "", "/Prod/login", "", "", nil, "/Prod/login"},
		{"alb", "", "/a%20b", "", "", nil, "/a%20b"},
		// What is not well escaped stands for itself.
		{"alb", "", "/100%", "", "", nil, "/100%25"},
		{"v2", "$default", "/a b", "$default", ownDomain, nil, "/a%20b"},
	} {
		var ev object
		var wrap wrapping
		switch c.shape {
		case "v2":
			ev, wrap = awsEvent(t, "apigw-v2-request-no-authorizer.json"), entries()[0].typed
			put(put(ev, "rawPath", c.path), "routeKey", c.route)
		case "url":
			ev, wrap = awsEvent(t, "lambda-urls-request.json"), entries()[1].typed
			put(ev, "rawPath", c.path)
		case "v1":
			ev, wrap = awsEvent(t, "apigw-request.json"), entries()[2].typed
			put(put(ev, "path", c.path), "resource", c.route)
		case "alb":
			ev, wrap = awsEvent(t, "alb-lambda-target-request-headers-only.json"), entries()[3].typed
			put(ev, "path", c.path)
		}
		if c.shape != "alb" {
			put(put(put(ev, "requestContext.stage", c.stage), "requestContext.domainName", c.domain), "pathParameters", c.params)
		}
		for _, wrap := range []wrapping{wrap, plain} {
			r := request(t, wrap, ev)
			require.Equal(t, c.want, r.URL.EscapedPath(), "%+v", c)
			require.Equal(t, '/', rune(r.RequestURI[0]))
		}
	}
}

// One route has one budget, whatever stands before or in its path.
func TestOneBudgetForARoute(t *testing.T) {
	byRoute := func(t *testing.T, e entry, set func(ev object, path, route string) object) {
		for _, wrap := range []wrapping{e.typed, plain} {
			h := wrap(newGuard(t, fivePerHour, keyedBy(handler.ByRoute())), ignore)
			passed := 0
			for i := range 20 {
				prefix := []string{"", "/Prod", "/v2"}[i%3]
				if status(invoke(t, h, set(awsEvent(t, e.file), fmt.Sprintf("%s/item/%d", prefix, i), "/item/{id}"))) == 200 {
					passed++
				}
			}
			require.Equal(t, 5, passed, e.name)
			require.Equal(t, 200, status(invoke(t, h, set(awsEvent(t, e.file), "/other", "/other"))), e.name)
		}
	}
	byRoute(t, entries()[0], func(ev object, path, route string) object {
		return put(put(ev, "rawPath", path), "routeKey", "ANY "+route)
	})
	byRoute(t, entries()[2], func(ev object, path, route string) object {
		return put(put(ev, "path", path), "resource", route)
	})
}

// An exemption holds with stage and base path, and does not widen.
func TestExemptions(t *testing.T) {
	exempt := func(t *testing.T, path, stage, domain string) bool {
		store := newCounting(t)
		g := newGuard(t, fivePerHour, func(cfg *handler.Config) {
			cfg.Store = store
			cfg.Policies[0].Skip = handler.Paths("/health")
		})
		ev := awsEvent(t, "apigw-v2-request-no-authorizer.json")
		put(put(put(ev, "rawPath", path), "requestContext.stage", stage), "requestContext.domainName", domain)
		for _, wrap := range []wrapping{entries()[0].typed, plain} {
			require.Equal(t, 200, status(invoke(t, wrap(g, func(context.Context, any) {}), ev)))
		}
		require.Contains(t, []int64{0, 2}, store.takes.Load())
		return store.takes.Load() == 0
	}
	require.True(t, exempt(t, "/health", "$default", ownDomain))
	require.True(t, exempt(t, "/Prod/health", "Prod", ownDomain))
	require.True(t, exempt(t, "/health", "Prod", "api.example.com"))
	for _, path := range []string{"/login", "/Prod/Prod/health", "/Prod/login/../health", "/Prod/login/%2e%2e/health", "/Prod//health", "/Prod/health/", "/Prod/%68ealth", "/Prod/health%2f"} {
		require.False(t, exempt(t, path, "Prod", ownDomain), path)
	}
}

// The CORS preflight of a browser is not counted in any form. One with a body is
// forged, and counts: a handler of events seldom looks at the method.
func TestPreflight(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		store := newCounting(t)
		h := wrap(newGuard(t, fivePerHour, func(cfg *handler.Config) { cfg.Store = store }), ignore)
		ev := e.headers(awsEvent(t, e.file), map[string]string{"origin": "https://example.com", "access-control-request-method": "POST", "host": "x"})
		if e.name == "http api" || e.name == "function url" {
			put(ev, "requestContext.http.method", http.MethodOptions)
		} else {
			put(ev, "httpMethod", http.MethodOptions)
		}
		put(put(ev, "body", ""), "isBase64Encoded", false)
		for range 10 {
			require.Equal(t, 200, status(invoke(t, h, ev)))
		}
		require.Zero(t, store.takes.Load())

		passed := 0
		for i := range 20 {
			put(put(ev, "body", "YQ=="), "isBase64Encoded", i%2 == 0)
			if status(invoke(t, h, ev)) == 200 {
				passed++
			}
		}
		require.Equal(t, 5, passed)
	})
}
