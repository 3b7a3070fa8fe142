package dynamotest

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	minidyn "github.com/truora/minidyn/aws-v2/client"
)

// Bare returns the engine itself with an empty Table: no SDK and no network between, no
// faults, no Date header and no counts. It is for tests that make calls by the
// hundred thousand.
func Bare(t testing.TB) *minidyn.Client {
	t.Helper()
	client := minidyn.NewClient()
	_, err := client.CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName:            aws.String(Table),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(KeyAttribute), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(KeyAttribute), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatalf("dynamotest: %v", err)
	}
	return client
}
