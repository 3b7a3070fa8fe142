package dynamo_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/dynamo"
)

func Example() {
	// On Lambda: shared, err := dynamo.FromEnv(). Here an engine in this process
	// stands in for the service.
	engine, err := dynamotest.Start()
	if err != nil {
		log.Fatal(err)
	}
	shared, err := dynamo.New(dynamo.Config{Client: engine.Client(), Table: dynamotest.Table})
	if err != nil {
		log.Fatal(err)
	}

	hit := stores.Hit{Key: "contact-form:3mJ9", Limit: stores.FixedWindow(2, 10*time.Minute)}
	for range 3 {
		d, err := shared.Take(context.Background(), hit)
		if err != nil {
			log.Fatal(err) // package failover decides locally instead
		}
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfter.Round(time.Minute))
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 10m0s
}
