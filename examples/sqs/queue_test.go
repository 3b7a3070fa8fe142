package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

var fivePerMinute = stores.FixedWindow(5, time.Minute)

// A tenant who floods the queue waits; the others don't, and his jobs are done when his
// time has come.
func TestTenantsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(crew)
		store := newShared(t)
		queues := []*Queue{newQueue(t, store, fivePerMinute, c), newQueue(t, store, fivePerMinute, c)} // two instances
		flood := ids("a", 20)
		again := append(handle(t, queues[0], t.Context(), batch("ann", 1, flood[:10]...)), handle(t, queues[1], t.Context(), batch("ann", 1, flood[10:]...))...)
		require.Equal(t, flood[5:], again)
		for range 100 {
			require.Equal(t, again[:10], handle(t, queues[1], t.Context(), batch("ann", 2, again[:10]...)))
		}
		require.Equal(t, flood[:5], c.did)
		require.Empty(t, handle(t, queues[1], t.Context(), batch("bob", 1, ids("b", 5)...)))

		for round := 2; len(again) > 0 && round < 10; round++ {
			time.Sleep(time.Minute)
			again = handle(t, queues[round%2], t.Context(), batch("ann", round, again...))
		}
		require.Empty(t, again)
		require.Len(t, c.did, 25)
	})
}

// A job that fails comes again and pays once. Who fails on purpose gets nothing for it
// but his own tries.
func TestAMessagePaysOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crew{fail: func(id string) error {
			switch id {
			case "bad":
				return errors.New("no luck")
			case "worse":
				panic("no luck either")
			}
			return nil
		}}
		store := newShared(t)
		for i := range 10 { // each on an instance of its own
			q := newQueue(t, store, fivePerMinute, c)
			require.Equal(t, []string{"bad", "worse"}, handle(t, q, t.Context(), batch("ann", i+1, "bad", "worse")))
		}
		q := newQueue(t, store, fivePerMinute, c)
		require.Equal(t, []string{"c3", "c4"}, handle(t, q, t.Context(), batch("ann", 1, ids("c", 5)...)), "two of five are spent")
		c.fail = nil
		require.Empty(t, handle(t, q, t.Context(), batch("ann", 11, "bad", "worse")), "they had paid")

		// The mark lasts as long as the queue keeps the message.
		time.Sleep(retention - time.Minute)
		require.Empty(t, handle(t, q, t.Context(), batch("ann", 12, "bad")))
		require.Empty(t, handle(t, q, t.Context(), batch("ann", 1, ids("d", 5)...)))
	})
}

// In a FIFO queue nothing overtakes its group, and what waits for it costs nothing. In a
// standard queue the group has no order.
func TestFIFOGroups(t *testing.T) {
	group := func(b events.SQSEvent, arn, group string) events.SQSEvent {
		for i := range b.Records {
			b.Records[i].EventSourceARN = arn
			b.Records[i].Attributes["MessageGroupId"] = group
		}
		return b
	}
	mix := func(arn string) (b events.SQSEvent) {
		ones, twos := group(batch("ann", 1, ids("one", 4)...), arn, "one"), group(batch("bob", 1, ids("two", 4)...), arn, "two")
		for i := range 4 {
			b.Records = append(b.Records, ones.Records[i], twos.Records[i])
		}
		return b
	}
	for name, tt := range map[string]struct {
		arn   string
		limit int
		fail  string
		again []string
		asked int64 // of the store
	}{
		"fifo, limited":     {fifo, 2, "", []string{"one2", "two2", "one3", "two3"}, 2*(2*2) + 2},
		"standard, limited": {standard, 2, "", []string{"one2", "two2", "one3", "two3"}, 2*(2*2) + 2}, // the second refusal is remembered
		"fifo, failed":      {fifo, 10, "one1", []string{"one1", "one2", "one3"}, 2*2 + 2*4},
		"standard, failed":  {standard, 10, "one1", []string{"one1"}, 2 * 8},
	} {
		t.Run(name, func(t *testing.T) {
			c := &crew{fail: func(id string) error {
				if id == tt.fail {
					return errors.New("no luck")
				}
				return nil
			}}
			store := newShared(t)
			q := newQueue(t, store, stores.FixedWindow(tt.limit, time.Minute), c)
			require.Equal(t, tt.again, handle(t, q, t.Context(), mix(tt.arn)))
			require.Equal(t, tt.asked, store.asked())
		})
	}
}

// While the store is away an instance's own memory limits, and there is no free pass.
func TestStoreAway(t *testing.T) {
	c := new(crew)
	store := newShared(t)
	store.away.Store(true)
	q := newQueue(t, store, fivePerMinute, c)
	for n := range 20 {
		require.Equal(t, ids("a", 10)[5:], handle(t, q, t.Context(), batch("ann", n+1, ids("a", 10)...)))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.did {
		require.Less(t, id, "a5", "an unpaid one was done")
	}
}

// No decision is no free pass, for the cost as for the mark.
func TestNoDecision(t *testing.T) {
	c := new(crew)
	q := newQueue(t, newShared(t), fivePerMinute, c)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for n := range 3 {
		require.Equal(t, []string{"a0", "a1"}, handle(t, q, over, batch("ann", n+1, "a0", "a1")))
	}
	require.Empty(t, c.did)
}

// Near the function's timeout nothing more is begun, or counted: a function that times
// out has the whole batch come again.
func TestNoTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		c := new(crew)
		q := newQueue(t, store, stores.FixedWindow(100, time.Minute), c)
		q.Worker = slow{c}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.Equal(t, []string{"a3", "a4", "a5"}, handle(t, q, ctx, batch("ann", 1, ids("a", 6)...)))
		require.NoError(t, ctx.Err())
		require.Equal(t, int64(6), store.asked())
	})
}

// slow takes a second for a job, and checks that it is given no more time than there is.
type slow struct{ Worker }

func (s slow) Do(ctx context.Context, job events.SQSMessage) error {
	deadline, ok := ctx.Deadline()
	if !ok || time.Until(deadline) < 2*time.Second {
		return errors.New("too late to begin")
	}
	time.Sleep(time.Second)
	return s.Worker.Do(ctx, job)
}

// Many batches at once: as many jobs as the limit has, however they are spread.
func TestManyBatchesAtOnce(t *testing.T) {
	c := new(crew)
	store := newShared(t)
	q := newQueue(t, store, stores.FixedWindow(5, time.Hour), c)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 5 {
				_, _ = q.Handle(context.Background(), batch("ann", 1, ids(fmt.Sprint("m", i, "-", n, "-"), 10)...))
			}
		})
	}
	wg.Wait()
	require.Len(t, c.did, 5)
}

// What a message lacks is no free pass, and no way into another's counter.
func TestOddMessages(t *testing.T) {
	c := new(crew)
	q := newQueue(t, newShared(t), fivePerMinute, c)
	empty := ""
	odd := events.SQSEvent{}
	for i := range 20 {
		m := message(fmt.Sprint("odd", i), "", 1)
		if i%2 == 0 {
			m.MessageAttributes = map[string]events.SQSMessageAttribute{"tenant": {StringValue: &empty}}
		}
		odd.Records = append(odd.Records, m)
	}
	require.Len(t, handle(t, q, t.Context(), odd), 15)
	require.Empty(t, handle(t, q, t.Context(), batch(standard, 1, "named as the queue")), "a tenant is no queue")

	// Without an id, or attributes, a message pays each time.
	nothing := events.SQSEvent{Records: make([]events.SQSMessage, 1)}
	for i := range 10 {
		require.Len(t, handle(t, q, t.Context(), nothing), map[bool]int{true: 0, false: 1}[i < 5], i)
	}
	require.Empty(t, handle(t, q, t.Context(), events.SQSEvent{}))
}
