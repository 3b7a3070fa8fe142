package main

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
)

const (
	jobs = "job"  // the limit of each tenant
	paid = "paid" // marks a message whose cost was taken
)

// retention is how long the queue keeps a message: so long it may come again.
const retention = 4 * 24 * time.Hour

// newGuard is called before Start: what is misconfigured shows when the function is
// deployed. It sends nothing; a connection that was opened now could be dead by the
// first invocation.
func newGuard() (*handler.Guard, error) {
	store, err := openStore()
	if err != nil {
		return nil, err
	}
	limit, err := stores.ParseLimit(cmp.Or(os.Getenv("SALLYPORT_LIMIT"), "60/1m"))
	if err != nil {
		return nil, fmt.Errorf("SALLYPORT_LIMIT: %w", err)
	}
	return guardOver(store, limit)
}

func guardOver(store stores.Store, limit stores.Limit) (*handler.Guard, error) {
	return handler.New(handler.Config{
		Store: store,
		Policies: []handler.Policy{
			{Name: jobs, Limit: limit, Key: handler.Manual()},
			{Name: paid, Limit: stores.Cooldown(retention), Key: handler.Manual()},
		},
	})
}
