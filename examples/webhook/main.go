// Webhook is an AWS Lambda function behind an HTTP API: it takes JSON by POST, and
// limits how much one address may send.
//
// It checks no signature: whoever knows the URL can post, and nothing in a payload may
// be believed. Until you check one, treat a delivery as a hint to go and look at its
// source.
//
// It is configured by its environment:
//
//	SALLYPORT_LIMIT           default "60/1m"; see stores.ParseLimit
//	SALLYPORT_KEY_SECRET      keys the hash of addresses in the store
//	SALLYPORT_INSTANCES       how many instances share the limit while the store is away
//	SALLYPORT_TABLE           count in this DynamoDB table, with Lambda's own credentials
//	UPSTASH_REDIS_REST_URL    and _TOKEN, or KV_REST_API_URL and _TOKEN: count in Upstash
//
// Exactly one store has to be configured: Lambda runs as many instances as it likes,
// and a limit that each has for itself would be none.
//
// Payloads go nowhere yet: see Inbox.
package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/lambda"
	"github.com/sallyport/sallyport/stores"
)

func main() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	slog.SetDefault(logger)
	guard, err := newGuard()
	if err != nil {
		logger.Error("webhook: can't start", "error", err)
		os.Exit(1)
	}
	logger.Warn("webhook: payloads are logged by their length and not kept; put an Inbox of your own into main.go")
	lambda.Start(lambda.HTTPAPI(guard, receiver{logInbox{logger}}.receive))
}

// newGuard is called before Start: what is misconfigured shows when the function is
// deployed, and not as an answer. It sends nothing; a connection that was opened now
// could be dead by the first invocation.
func newGuard() (*handler.Guard, error) {
	store, err := openStore()
	if err != nil {
		return nil, err
	}
	limit, err := stores.ParseLimit(cmp.Or(os.Getenv("SALLYPORT_LIMIT"), "60/1m"))
	if err != nil {
		return nil, fmt.Errorf("SALLYPORT_LIMIT: %w", err)
	}
	return handler.New(handler.Config{
		Store: store,
		// API Gateway reports the address itself. X-Forwarded-For holds whatever the
		// sender wrote.
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{{
			Name:  "webhook",
			Limit: limit,
			Key:   handler.ByIP(),
		}},
	})
}
