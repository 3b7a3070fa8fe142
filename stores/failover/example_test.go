package failover_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
	"github.com/sallyport/sallyport/stores/memory"
)

// flaky stands for a shared store, Upstash or DynamoDB.
type flaky struct {
	stores.Store
	down bool
}

func (f *flaky) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	if f.down {
		return stores.Decision{}, errors.New("connection refused")
	}
	return f.Store.Take(ctx, hit)
}

func Example() {
	counters, err := memory.New(memory.Config{})
	if err != nil {
		panic(err)
	}
	shared := &flaky{Store: counters}
	store, err := failover.New(shared, failover.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	hit := stores.Hit{Key: "contact-form:client-1", Limit: stores.FixedWindow(2, 10*time.Minute)}
	take := func() {
		d, err := store.Take(context.Background(), hit)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Source, d.Allowed, d.Remaining)
	}
	take()
	shared.down = true
	take()
	take()
	// Output:
	// shared true 1
	// local true 0
	// local false 0
}
