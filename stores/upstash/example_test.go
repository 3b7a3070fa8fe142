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

func ExampleStore_Supports() {
	store, err := upstash.New(upstash.Config{URL: "https://eu1-calm-owl-12345.upstash.io", Token: "token"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(store.Supports(stores.Cooldown(15 * time.Minute)))
	fmt.Println(store.Supports(stores.SlidingWindow(5, 10*time.Minute)))
	// Output:
	// <nil>
	// upstash: a sliding limit: unsupported operation: use a fixed window or a cooldown, or another store
}
