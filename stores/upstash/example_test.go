package upstash_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

// In production URL and token come from the environment: upstash.FromEnv(). Here a
// double of Upstash stands in for the database.
func Example() {
	database, err := upstashtest.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer database.Close()

	store, err := upstash.New(upstash.Config{URL: database.URL, Token: database.Token})
	if err != nil {
		log.Fatal(err)
	}
	hit := stores.Hit{Key: "contact-form:4f1c", Limit: stores.FixedWindow(2, 10*time.Minute)}
	for range 3 {
		d, err := store.Take(context.Background(), hit)
		if err != nil {
			log.Fatal(err) // package failover decides by itself instead
		}
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfter.Round(time.Minute))
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 10m0s
}

func ExampleStore_TakeAll() {
	database, err := upstashtest.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer database.Close()
	store, err := upstash.New(upstash.Config{URL: database.URL, Token: database.Token})
	if err != nil {
		log.Fatal(err)
	}
	hits := []stores.Hit{
		{Key: "login:address:203.0.113.7", Limit: stores.SlidingWindow(20, time.Hour)},
		{Key: "login:account:4711", Limit: stores.FixedWindow(2, 10*time.Minute).BlockFor(time.Hour)},
		{Key: "login:everyone", Limit: stores.TokenBucket(500, time.Minute)},
	}
	decisions := make([]stores.Decision, len(hits))
	for range 3 {
		n, err := store.TakeAll(context.Background(), hits, decisions) // one exchange
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(n, decisions[n-1].Allowed, decisions[n-1].RetryAfter)
	}
	// Output:
	// 3 true 0s
	// 3 true 0s
	// 2 false 1h0m0s
}

func ExampleStore_Supports() {
	store, err := upstash.New(upstash.Config{URL: "https://eu1-calm-owl-12345.upstash.io", Token: "token"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(store.Supports(stores.SlidingLog(5, 10*time.Minute)))
	fmt.Println(store.Supports(stores.SlidingLog(5000, 10*time.Minute)))
	// Output:
	// <nil>
	// upstash: a log of 5000: unsupported operation: use sliding above 1000
}
