package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sallyport/sallyport/handler"
)

// reserve is the time that a job must find before the function's timeout, and of which
// the last second is for the answer. A function that times out has all of its messages
// come again, the done ones too.
const reserve = 3 * time.Second

// Queue limits and does what SQS delivers. It is safe for concurrent use.
type Queue struct {
	Guard  *handler.Guard // with the policies of newGuard
	Worker Worker
}

// Handle takes a batch one message at a time and returns those that are to come again:
// the ones over the limit, the ones whose job failed, and the ones there was no time for.
// It never returns an error, after which all would come again.
//
// In a FIFO queue what follows such a message in its group comes again too, uncounted,
// because it must not overtake. In a standard queue a MessageGroupId means fairness and
// no order.
func (q *Queue) Handle(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	again := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	counts := map[outcome]int{}
	var blocked map[string]bool // groups of a FIFO queue
	for _, job := range batch.Records {
		group, ordered := fifoGroup(job)
		out := postponed
		if !blocked[group] || !ordered {
			out = q.take(ctx, job)
		}
		counts[out]++
		if out == done {
			continue
		}
		again.BatchItemFailures = append(again.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: job.MessageId})
		if ordered {
			if blocked == nil {
				blocked = make(map[string]bool)
			}
			blocked[group] = true
		}
	}
	if counts[done] < len(batch.Records) {
		// A line for a batch: a flood of messages must not become a flood of lines.
		slog.InfoContext(ctx, "sqs: messages will come again", "done", counts[done], "limited", counts[limited], "failed", counts[failed], "postponed", counts[postponed])
	}
	return again, nil
}

// outcome is what became of a message.
type outcome string

const (
	done      outcome = "done"
	limited   outcome = "limited"
	failed    outcome = "failed"
	postponed outcome = "postponed" // not looked at
)

func (q *Queue) take(ctx context.Context, job events.SQSMessage) outcome {
	if deadline, ok := ctx.Deadline(); ok {
		if time.Until(deadline) < reserve {
			return postponed
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Second))
		defer cancel()
	}
	switch allowed, err := q.pay(ctx, job); {
	case err != nil:
		return failed // no decision is never a free pass
	case !allowed:
		return limited
	}
	if do(ctx, q.Worker, job) != nil {
		return failed
	}
	return done
}

// pay takes the cost of a job, once for each message, and tells whether it may be done.
//
// The mark is written after the cost was taken. If the process dies between the two, or
// SQS delivers a message twice at the same time, it pays twice; the other order would
// have let it pass unpaid. For the same reason a mark that can't be looked up is none.
func (q *Queue) pay(ctx context.Context, job events.SQSMessage) (allowed bool, err error) {
	id := job.MessageId
	// A message that comes for the first time has no mark, which saves a call. SQS's count
	// is approximate; where it is too low, a message pays twice. Without an id, which SQS
	// always gives, a mark would be everybody's.
	if id != "" && job.Attributes["ApproximateReceiveCount"] != "1" {
		if mark, err := q.Guard.Peek(ctx, paid, id); err == nil && !mark.Allowed {
			return true, nil
		}
	}
	decision, err := q.Guard.Take(ctx, jobs, 1, tenant(job)...)
	if err != nil || !decision.Allowed {
		return false, err
	}
	if id != "" {
		_, _ = q.Guard.Take(ctx, paid, 1, id) // without its mark the message only pays again
	}
	return true, nil
}

// tenant is whose job it is: the message attribute that the producer of yours wrote, out
// of what it knows about the caller and not out of what the caller says. Without one the
// messages of a queue share a counter.
func tenant(job events.SQSMessage) []string {
	if attribute := job.MessageAttributes["tenant"].StringValue; attribute != nil && *attribute != "" {
		return []string{"tenant", *attribute}
	}
	return []string{"queue", job.EventSourceARN}
}

// fifoGroup returns the group whose order a FIFO queue keeps.
func fifoGroup(job events.SQSMessage) (string, bool) {
	if !strings.HasSuffix(job.EventSourceARN, ".fifo") {
		return "", false
	}
	return job.Attributes["MessageGroupId"], true
}
