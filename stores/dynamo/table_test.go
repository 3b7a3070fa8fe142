package dynamo_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/dynamo"
)

func testCreateTable(t *testing.T, client *dynamodb.Client) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, dynamo.CreateTable(ctx, client, "fresh-limits"))
	require.NoError(t, dynamo.CreateTable(ctx, client, "fresh-limits"), "a table that exists is fine")

	s, err := dynamo.New(dynamo.Config{Client: client, Table: "fresh-limits"})
	require.NoError(t, err)
	d, err := s.Take(ctx, stores.Hit{Key: "k", Limit: stores.FixedWindow(1, time.Minute)})
	require.NoError(t, err)
	require.True(t, d.Allowed)

	_, err = client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("other-table"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	require.ErrorIs(t, dynamo.CreateTable(ctx, client, "other-table"), stores.ErrMisconfigured)
	require.ErrorIs(t, dynamo.CreateTable(ctx, nil, "fresh-limits"), stores.ErrMisconfigured)
	require.ErrorIs(t, dynamo.CreateTable(ctx, client, "x"), stores.ErrMisconfigured)
}

func TestCreateTable(t *testing.T)           { testCreateTable(t, dynamotest.New(t).Client()) }
func TestCreateTableOnDynalite(t *testing.T) { testCreateTable(t, dynamotest.Dynalite(t)) }

func TestCreateTableReportsWhatItCouldNotDo(t *testing.T) {
	for action, message := range map[string]string{
		"CreateTable": "creating the table", "DescribeTable": "looking for the table", "UpdateTimeToLive": "time to live",
	} {
		server := dynamotest.New(t)
		server.SetFault(dynamotest.Fault{Action: action, Do: dynamotest.Fail(400, "AccessDeniedException", "no")})
		require.ErrorContains(t, dynamo.CreateTable(t.Context(), server.Client(), "fresh-limits"), message)
	}
}
