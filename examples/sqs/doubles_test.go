package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// shared is a store that all instances see.
type shared struct {
	*memory.Store
	takes, peeks atomic.Int64
	away         atomic.Bool
}

func newShared(t *testing.T) *shared {
	m, err := memory.New(memory.Config{})
	require.NoError(t, err)
	return &shared{Store: m}
}

func (s *shared) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	s.takes.Add(1)
	if s.away.Load() {
		return stores.Decision{}, fmt.Errorf("away: %w", stores.ErrUnavailable)
	}
	d, err := s.Store.Take(ctx, hit)
	d.Source = stores.Shared
	return d, err
}

func (s *shared) Peek(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	s.peeks.Add(1)
	if s.away.Load() {
		return stores.Decision{}, fmt.Errorf("away: %w", stores.ErrUnavailable)
	}
	d, err := s.Store.Peek(ctx, hit)
	d.Source = stores.Shared
	return d, err
}

func (s *shared) asked() int64 { return s.takes.Load() + s.peeks.Load() }

// crew is a Worker that remembers what it did, and fails or panics where it is told to.
type crew struct {
	mu   sync.Mutex
	did  []string
	fail func(id string) error
}

func (c *crew) Do(_ context.Context, job events.SQSMessage) error {
	if c.fail != nil {
		if err := c.fail(job.MessageId); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did = append(c.did, job.MessageId)
	return nil
}

func newQueue(t *testing.T, store stores.Store, limit stores.Limit, c *crew) *Queue {
	guard, err := guardOver(store, limit)
	require.NoError(t, err)
	return &Queue{Guard: guard, Worker: c}
}

const (
	standard = "arn:aws:sqs:us-east-1:123456789012:jobs"
	fifo     = standard + ".fifo"
)

// message is one of a tenant, "" for none, as SQS delivers it for the n-th time.
func message(id, tenant string, n int) events.SQSMessage {
	m := events.SQSMessage{MessageId: id, EventSourceARN: standard, EventSource: "aws:sqs", Body: "job",
		Attributes: map[string]string{"ApproximateReceiveCount": fmt.Sprint(n)}}
	if tenant != "" {
		m.MessageAttributes = map[string]events.SQSMessageAttribute{"tenant": {DataType: "String", StringValue: &tenant}}
	}
	return m
}

func batch(tenant string, n int, ids ...string) (b events.SQSEvent) {
	for _, id := range ids {
		b.Records = append(b.Records, message(id, tenant, n))
	}
	return b
}

func ids(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// handle returns the ids that come again.
func handle(t *testing.T, q *Queue, ctx context.Context, b events.SQSEvent) []string {
	response, err := q.Handle(ctx, b)
	require.NoError(t, err)
	require.NotNil(t, response.BatchItemFailures)
	again := []string{}
	for _, f := range response.BatchItemFailures {
		again = append(again, f.ItemIdentifier)
	}
	return again
}
