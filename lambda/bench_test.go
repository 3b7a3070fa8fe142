package lambda_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sallyport/sallyport/lambda"
	"github.com/sallyport/sallyport/stores"
)

// What the kit adds to a typed handler: the difference to bare.
func BenchmarkHTTPAPI(b *testing.B) {
	bare := func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: 200, Headers: map[string]string{"Content-Type": "text/plain"}}, nil
	}
	ev := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "$default", RawPath: "/contact",
		Headers: map[string]string{"accept": "*/*", "content-length": "0", "host": "id.execute-api.eu-central-1.amazonaws.com", "user-agent": "curl/8", "x-forwarded-for": "203.0.113.9", "x-forwarded-port": "443", "x-forwarded-proto": "https", "x-amzn-trace-id": "Root=1-5e9f0c65-1de4d666d4dd26aced652b6c"},
	}
	ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.SourceIP = "POST", "203.0.113.9"
	for name, h := range map[string]func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error){
		"bare":    bare,
		"allowed": lambda.HTTPAPI(newGuard(b, stores.FixedWindow(1<<30, time.Hour)), bare),
		"refused": lambda.HTTPAPI(newGuard(b, stores.FixedWindow(1, time.Hour)), bare),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			ctx := context.Background()
			for b.Loop() {
				_, _ = h(ctx, ev)
			}
		})
	}
}
