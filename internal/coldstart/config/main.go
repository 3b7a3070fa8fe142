// Config counts in DynamoDB with a client of AWS's config package. It is a module of its
// own, so that the kit's go.mod does not need that package.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sallyport/sallyport/internal/coldstart/guarded"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/dynamo"
)

func main() { guarded.Start(open()) }

func open() (stores.Store, error) {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		return nil, err
	}
	return dynamo.New(dynamo.Config{Client: dynamodb.NewFromConfig(cfg), Table: os.Getenv("SALLYPORT_TABLE")})
}
