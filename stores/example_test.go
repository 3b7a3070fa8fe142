package stores_test

import (
	"fmt"
	"time"

	"github.com/sallyport/sallyport/stores"
)

func ExampleParseLimit() {
	limit, err := stores.ParseLimit("sliding 100/1m")
	fmt.Println(limit == stores.SlidingWindow(100, time.Minute), err)
	_, err = stores.ParseLimit("5 per minute")
	fmt.Println(err)
	// Output:
	// true <nil>
	// limit "5 per minute": invalid: "5": want quota/window such as "5/10m", after one of fixed, sliding, log, token, leaky, or cooldown and a duration
}

func ExampleLimit_String() {
	fmt.Println(stores.FixedWindow(5, 10*time.Minute))
	fmt.Println(stores.TokenBucket(20, 4*time.Second).BlockFor(time.Hour))
	fmt.Println(stores.Cooldown(15 * time.Minute))
	// Output:
	// 5/10m
	// token 20/4s block 1h
	// 1/15m
}
