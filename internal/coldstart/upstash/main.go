// Upstash counts in Upstash Redis.
package main

import (
	"github.com/sallyport/sallyport/internal/coldstart/guarded"
	"github.com/sallyport/sallyport/stores/upstash"
)

func main() {
	store, err := upstash.FromEnv()
	guarded.Start(store, err)
}
