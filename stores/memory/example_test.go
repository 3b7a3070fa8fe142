package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

func Example() {
	store, err := memory.New(memory.Config{})
	if err != nil {
		panic(err)
	}
	hit := stores.Hit{Key: "contact-form:client-1", Limit: stores.FixedWindow(2, 10*time.Minute)}
	for range 3 {
		d, err := store.Take(context.Background(), hit)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Allowed, d.Remaining)
	}
	fmt.Println("keys:", store.Len())
	// Output:
	// true 1
	// true 0
	// false 0
	// keys: 1
}
