package failover_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
	"github.com/sallyport/sallyport/stores/memory"
)

// weather is what calls to the shared store meet for a while.
type weather uint8

const (
	fair       weather = iota
	refused            // at once, and certainly not counted
	lostBefore         // cut, not counted
	lostAfter          // counted, then cut
	silent             // no answer, not counted
	throttled          // at once, each hostile key alone
)

// climate is the weather over time: it turns with each of the times, and depends on
// nothing that anybody does.
type climate struct {
	turns []time.Duration
	kinds []weather
}

func newClimate(rng *rand.Rand, length time.Duration, kinds ...weather) (c climate) {
	for at := time.Duration(0); at < length; at += time.Duration(rng.Int64N(int64(4 * time.Second))) {
		c.turns = append(c.turns, at)
		kind := fair
		if len(c.turns)%2 == 0 {
			kind = kinds[rng.IntN(len(kinds))]
		}
		c.kinds = append(c.kinds, kind)
	}
	return c
}

func (c climate) at(since time.Duration) weather {
	kind := fair
	for i, turn := range c.turns {
		if turn <= since {
			kind = c.kinds[i]
		}
	}
	return kind
}

// distant is a shared store some milliseconds away, in some climate.
type distant struct {
	mem     *memory.Store
	start   time.Time
	climate climate

	mu      sync.Mutex
	asked   map[any]int // by hit
	counted map[any]int // of these, what the store let through
	paid    int
}

type askedKey struct{}

const away = 5 * time.Millisecond // one way

func (d *distant) TakeOwing(ctx context.Context, hit stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	id := ctx.Value(askedKey{})
	d.mu.Lock()
	d.asked[id]++
	d.mu.Unlock()
	kind := d.climate.at(time.Since(d.start))
	switch kind {
	case refused:
		return stores.Decision{}, &fault.Error{Kind: stores.ErrUnavailable, Text: "connection refused", Definite: true}
	case silent:
		<-ctx.Done()
		return stores.Decision{}, &fault.Error{Kind: stores.ErrUnavailable, Text: "no answer", Cause: ctx.Err()}
	case throttled:
		if hit.Key[0] == 'x' {
			return stores.Decision{}, &fault.Error{Kind: stores.ErrHotKey, Text: "hot key", Definite: true, KeyOnly: true}
		}
	}
	if err := travel(ctx); err != nil {
		return stores.Decision{}, err
	}
	if kind == lostBefore {
		return stores.Decision{}, &fault.Error{Kind: stores.ErrUnavailable, Text: "cut"}
	}
	told, err := d.mem.TakeOwing(context.Background(), hit, owed, until)
	d.mu.Lock()
	d.paid += owed
	if told.Allowed {
		d.counted[id]++
	}
	d.mu.Unlock()
	if err := travel(ctx); err != nil {
		return stores.Decision{}, err
	}
	if kind == lostAfter {
		return stores.Decision{}, &fault.Error{Kind: stores.ErrUnavailable, Text: "cut"}
	}
	return told, err
}

// travel takes its time, unless the caller gives up.
func travel(ctx context.Context) error {
	t := time.NewTimer(away)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return &fault.Error{Kind: stores.ErrUnavailable, Text: "given up", Cause: ctx.Err()}
	}
}

func (d *distant) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	return d.TakeOwing(ctx, hit, 0, 0)
}

// fleet is instances before one distant store.
type fleet struct {
	*distant
	instances []*failover.Store
}

func newFleet(t *testing.T, n int, c climate, cfg failover.Config) *fleet {
	mem, err := memory.New(memory.Config{})
	require.NoError(t, err)
	f := &fleet{distant: &distant{mem: mem, start: time.Now(), climate: c, asked: map[any]int{}, counted: map[any]int{}}}
	cfg.Instances, cfg.Logger = n, slog.New(slog.DiscardHandler)
	for range n {
		s, err := failover.New(f.distant, cfg)
		require.NoError(t, err)
		f.instances = append(f.instances, s)
	}
	return f
}

// event is one hit in a plan.
type event struct {
	at       time.Duration
	instance int
	hit      stores.Hit
	hangUp   time.Duration // 0: never
}

// outcome is what became of it, and how long that took.
type outcome struct {
	stores.Decision
	err  error
	when time.Time
	took time.Duration
}

// play sends the events at their times, each from a client of its own, and returns what
// became of them, in their order.
func (f *fleet) play(plan []event) []outcome {
	outcomes := make([]outcome, len(plan))
	var all sync.WaitGroup
	for i, e := range plan {
		all.Go(func() {
			time.Sleep(e.at)
			ctx := context.WithValue(context.Background(), askedKey{}, i)
			if e.hangUp > 0 {
				gone, hangUp := context.WithCancel(ctx)
				time.AfterFunc(e.hangUp, hangUp)
				ctx = gone
			}
			begun := time.Now()
			d, err := f.instances[e.instance].Take(ctx, e.hit)
			outcomes[i] = outcome{d, err, time.Now(), time.Since(begun)}
		})
	}
	all.Wait()
	return outcomes
}
