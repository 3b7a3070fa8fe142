// Memory counts in the memory of the instance alone.
package main

import (
	"github.com/sallyport/sallyport/internal/coldstart/guarded"
	"github.com/sallyport/sallyport/stores/memory"
)

func main() {
	store, err := memory.New(memory.Config{})
	guarded.Start(store, err)
}
