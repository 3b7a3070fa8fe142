// Package guarded is what the measured programs with the kit have in common: one
// policy, and an answer that says who counted.
package guarded

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/lambda"
	"github.com/sallyport/sallyport/stores"
)

// Start runs the function; it does not return. err is that of the store.
func Start(store stores.Store, err error) {
	if err != nil {
		fail(err)
	}
	guard, err := handler.New(handler.Config{
		Store:    store,
		ClientIP: handler.Direct(),
		Verdicts: true,
		Policies: []handler.Policy{{
			Name:  "webhook",
			Limit: stores.FixedWindow(60, time.Hour),
			Key:   handler.ByIP(),
		}},
	})
	if err != nil {
		fail(err)
	}
	lambda.Start(lambda.HTTPAPI(guard, handle))
}

func handle(ctx context.Context, _ events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	response := events.APIGatewayV2HTTPResponse{StatusCode: http.StatusOK}
	if verdict, ok := handler.FromContext(ctx); ok {
		for _, outcome := range verdict.Outcomes {
			response.Body = outcome.Source.String()
			if outcome.Fault != nil {
				slog.Warn("the store failed", "error", outcome.Fault)
			}
		}
	}
	return response, nil
}

func fail(err error) {
	slog.Error("can't start", "error", err)
	os.Exit(1)
}
