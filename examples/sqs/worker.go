package main

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/aws/aws-lambda-go/events"
)

// Worker does the jobs. Put one of your own into main.go. A job may come twice, as SQS
// delivers at least once: let its MessageId be the key, if twice would hurt. After an
// error, which is the Worker's to log, it comes again, without being counted again. The
// context ends early enough for the answer to reach SQS.
type Worker interface {
	Do(ctx context.Context, job events.SQSMessage) error
}

// logWorker shows that a job came, and does nothing about it.
type logWorker struct{ logger *slog.Logger }

// Do logs the length of the body in bytes.
func (w logWorker) Do(ctx context.Context, job events.SQSMessage) error {
	w.logger.InfoContext(ctx, "sqs: a job came, and was not done", "bytes", len(job.Body))
	return nil
}

var errPanicked = errors.New("sqs: the worker panicked")

// do runs the worker. A panic is this job's failure alone: it would end the process, and
// all ten messages of the batch would come again, the done ones too.
func do(ctx context.Context, w Worker, job events.SQSMessage) (err error) {
	defer func() {
		if recover() != nil {
			// Not with what: that may be the job's own words.
			slog.ErrorContext(ctx, "sqs: the worker panicked", "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	return w.Do(ctx, job)
}
