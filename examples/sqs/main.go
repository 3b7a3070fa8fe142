// Sqs is an AWS Lambda function that works off a queue and limits how much of it each
// tenant gets: the tenant who sends a million jobs waits, and the others don't. Its
// template.yaml has the queue.
//
// A message that is over the limit is reported as a batch item failure. SQS hands it out
// again after the queue's visibility timeout, up to maxReceiveCount times, and then moves
// it to the dead letter queue: the two of them say how long a job may wait for its turn.
//
// It is configured by its environment:
//
//	SALLYPORT_LIMIT         of the jobs of each tenant; default "60/1m"; see stores.ParseLimit
//	SALLYPORT_KEY_SECRET    keys the hash of tenants and message ids in the store
//	SALLYPORT_INSTANCES     how many instances share the limit while the store is away
//	SALLYPORT_TABLE         count in this DynamoDB table, with Lambda's own credentials
//	UPSTASH_REDIS_REST_URL  and _TOKEN, or KV_REST_API_URL and _TOKEN: count in Upstash
//
// Exactly one store has to be configured: Lambda runs as many instances as it likes, and
// what one of them remembers, the others don't know.
//
// Jobs are not done yet: see Worker.
package main

import (
	"log/slog"
	"os"

	"github.com/sallyport/sallyport/lambda"
)

func main() {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	slog.SetDefault(logger)
	guard, err := newGuard()
	if err != nil {
		logger.Error("sqs: can't start", "error", err)
		os.Exit(1)
	}
	logger.Warn("sqs: jobs are logged by their length and not done; put a Worker of your own into main.go")
	lambda.Start((&Queue{Guard: guard, Worker: logWorker{logger}}).Handle)
}
