package lambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/lambda"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

func exampleGuard() *handler.Guard {
	// In production: upstash.FromEnv() or dynamo.FromEnv(), which all instances share.
	store, err := memory.New(memory.Config{})
	if err != nil {
		log.Fatal(err)
	}
	guard, err := handler.New(handler.Config{
		Store:    store,
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{{
			Name:  "contact-form",
			Limit: stores.FixedWindow(2, 10*time.Minute),
			Key:   handler.ByIP(),
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	return guard
}

// A function behind an HTTP API of API Gateway. Its main is the line with Start.
func ExampleHTTPAPI() {
	handle := func(_ context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: "thank you"}, nil
	}
	limited := lambda.HTTPAPI(exampleGuard(), handle)
	// lambda.Start(limited)

	var ev events.APIGatewayV2HTTPRequest
	ev.Version, ev.RawPath = "2.0", "/contact"
	ev.RequestContext.HTTP.Method = "POST"
	ev.RequestContext.HTTP.SourceIP = "203.0.113.9"
	for range 3 {
		resp, err := limited(context.Background(), ev)
		fmt.Println(resp.StatusCode, resp.Headers["Ratelimit"], resp.Headers["Retry-After"], err)
	}
	// Output:
	// 200 "contact-form";r=1;t=600  <nil>
	// 200 "contact-form";r=0;t=600  <nil>
	// 429 "contact-form";r=0;t=600 600 <nil>
}

// Any http.Handler, here a mux, behind whichever of the four events arrives.
func ExampleHTTP() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello, %s", r.PathValue("name"))
	})
	function := lambda.HTTP(exampleGuard().Handler(mux))
	// lambda.Start(function)

	answer, err := function.Invoke(context.Background(), []byte(`{
		"version": "2.0",
		"rawPath": "/prod/hello/world",
		"requestContext": {
			"domainName": "id.execute-api.eu-central-1.amazonaws.com",
			"stage": "prod",
			"http": {"method": "GET", "sourceIp": "203.0.113.9"}
		}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", answer)
	// Output:
	// {"statusCode":200,"headers":{"Content-Type":"text/plain; charset=utf-8","Ratelimit":"\"contact-form\";r=1;t=600","Ratelimit-Policy":"\"contact-form\";q=2;w=600"},"multiValueHeaders":{},"body":"hello, world","cookies":[]}
}

// What a guard decides, as metrics in CloudWatch: the function's log is enough.
func ExampleEMF() {
	store, err := memory.New(memory.Config{})
	if err != nil {
		log.Fatal(err)
	}
	metrics := lambda.EMF(os.Stdout)
	guard, err := handler.New(handler.Config{
		Store:    store,
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{{Name: "login", Limit: stores.FixedWindow(5, time.Minute), Key: handler.ByIP()}},
		Observe:  metrics,
	})
	if err != nil {
		log.Fatal(err)
	}
	function := lambda.HTTP(guard.Handler(http.NotFoundHandler()))
	// With the option the last counts are written too, where an extension is registered:
	//
	//	flush := func() { metrics(context.Background(), handler.Verdict{}) }
	//	lambda.Start(function, awslambda.WithEnableSIGTERM(flush))
	_ = function
}

// A function that answers requests and works off a queue: the queue's messages pass
// uncounted.
func ExampleRaw() {
	function := lambda.Raw(exampleGuard(), awslambda.NewHandler(func(_ context.Context, ev json.RawMessage) (any, error) {
		return map[string]any{"statusCode": 200, "body": fmt.Sprint(len(ev), " bytes")}, nil
	}))
	// lambda.Start(function)

	request := `{"version":"2.0","requestContext":{"http":{"method":"GET","sourceIp":"203.0.113.9"}}}`
	for _, event := range []string{request, request, request, `{"Records":[{"eventSource":"aws:sqs"}]}`} {
		answer, err := function.Invoke(context.Background(), []byte(event))
		if err != nil {
			log.Fatal(err)
		}
		var status struct{ StatusCode int }
		if err := json.Unmarshal(answer, &status); err != nil {
			log.Fatal(err)
		}
		fmt.Println(status.StatusCode)
	}
	// Output:
	// 200
	// 200
	// 429
	// 200
}

// A key that only the event has.
func ExampleEvent() {
	byTenant := handler.ByFunc(func(r *http.Request) string {
		ev, _ := lambda.Event(r.Context()).(events.APIGatewayV2HTTPRequest)
		return ev.StageVariables["tenant"]
	})
	fmt.Println(byTenant)
	// Output: func
}
