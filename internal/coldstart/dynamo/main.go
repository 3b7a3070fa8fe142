// Dynamo counts in DynamoDB, with the credentials that Lambda puts into the environment.
package main

import (
	"github.com/sallyport/sallyport/internal/coldstart/guarded"
	"github.com/sallyport/sallyport/stores/dynamo"
)

func main() {
	store, err := dynamo.FromEnv()
	guarded.Start(store, err)
}
