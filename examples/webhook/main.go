// Webhook is an AWS Lambda function that receives webhooks: it verifies their
// signatures, sees to it that each delivery is kept once, and limits how much one address
// may deliver. It runs behind an HTTP API, a REST API, a Function URL or an Application
// Load Balancer; template.yaml has the first.
//
// It is configured by its environment:
//
//	SALLYPORT_WEBHOOK_SCHEME       who signs how: "standard" (Standard Webhooks and Svix, the
//	                               default), "stripe", "github", "slack", or "hmac:" and the
//	                               name of the header that holds the HMAC-SHA-256 of the body
//	SALLYPORT_WEBHOOK_SECRET       what the sender signs with
//	SALLYPORT_WEBHOOK_SECRET_NEXT  another secret, while the sender changes to it
//	SALLYPORT_LIMIT                of right deliveries, for each address that they come from;
//	                               default "60/1m"; see stores.ParseLimit
//	SALLYPORT_KEY_SECRET           keys the hash of addresses and ids in the store
//	SALLYPORT_INSTANCES            how many instances share the limit while the store is away
//	SALLYPORT_TABLE                count in this DynamoDB table, with Lambda's own credentials
//	UPSTASH_REDIS_REST_URL         and _TOKEN, or KV_REST_API_URL and _TOKEN: count in Upstash
//	SALLYPORT_SECRETS              a path in AWS's Parameter Store, under which the secrets of
//	                               this list stand by their names; see secrets.go
//
// Exactly one store has to be configured: Lambda runs as many instances as it likes, and
// what one of them remembers, the others don't know. While the store is away deliveries are
// refused with 503, and senders try again; see package webhook for what is promised.
//
// Change a secret in three steps: set SALLYPORT_WEBHOOK_SECRET_NEXT, have the sender change,
// and move the new secret to SALLYPORT_WEBHOOK_SECRET some minutes later.
//
// Deliveries go nowhere yet: see Inbox.
package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/handler/webhook"
	"github.com/sallyport/sallyport/lambda"
	"github.com/sallyport/sallyport/stores"
)

func main() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	slog.SetDefault(logger)
	err := readSecrets()
	var receiver *webhook.Receiver
	if err == nil {
		receiver, err = newReceiver(logInbox{logger})
	}
	if err != nil {
		logger.Error("webhook: can't start", "error", err)
		os.Exit(1)
	}
	logger.Warn("webhook: deliveries are logged by their length and not kept; put an Inbox of your own into main.go")
	lambda.Start(lambda.HTTP(receiver))
}

// newReceiver is called before Start: what is misconfigured shows when the function is
// deployed, and not as an answer. It sends nothing; a connection that was opened now
// could be dead by the first invocation.
func newReceiver(inbox Inbox) (*webhook.Receiver, error) {
	scheme, err := schemeFromEnv()
	if err != nil {
		return nil, err
	}
	guard, err := newGuard()
	if err != nil {
		return nil, err
	}
	return webhook.New(webhook.Config{
		Scheme:  scheme,
		Valid:   guard,
		Marks:   guard, // the same store
		MaxBody: maxBody,
	}, keepIn(inbox))
}

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
		// The gateway reports the address itself. X-Forwarded-For holds whatever the
		// sender wrote.
		ClientIP: handler.Direct(),
		Policies: []handler.Policy{{
			Name:  "webhook",
			Limit: limit,
			Key:   handler.ByIP(),
		}},
		// For the alarms of template.yaml.
		Observe: lambda.EMF(nil),
	})
}
