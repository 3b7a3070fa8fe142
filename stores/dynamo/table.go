package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sallyport/sallyport/stores"
)

// CreateTable makes the table in a local engine, on demand, with time to live where the engine
// has it, and waits until it is there or ctx is done. A table that exists already is
// fine if its key is KeyAttribute. In production the table belongs into the template, and a
// function that serves requests needs no right to do this.
func CreateTable(ctx context.Context, client *dynamodb.Client, table string) error {
	if client == nil {
		return fmt.Errorf("%w: dynamo: no client", stores.ErrMisconfigured)
	}
	if err := checkTable(table); err != nil {
		return err
	}
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &table,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(KeyAttribute), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(KeyAttribute), KeyType: types.KeyTypeHash}},
	})
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("dynamo: creating the table: %w", err)
	}
	if err := awaitTable(ctx, client, table); err != nil {
		return err
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(TTLAttribute), Enabled: aws.Bool(true),
		},
	})
	if err != nil && !unknownOrSet(err) {
		return fmt.Errorf("dynamo: enabling time to live: %w", err)
	}
	return nil
}

// awaitTable asks until the table is no longer being made. The SDK's waiter would wait for ever
// for an engine that shows no status.
func awaitTable(ctx context.Context, client *dynamodb.Client, table string) error {
	for {
		out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
		if err != nil {
			return fmt.Errorf("dynamo: looking for the table: %w", err)
		}
		if out.Table == nil || out.Table.TableStatus != types.TableStatusCreating {
			return checkKey(out.Table)
		}
		timer := time.NewTimer(100 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

func checkKey(table *types.TableDescription) error {
	if table == nil || len(table.KeySchema) == 1 && aws.ToString(table.KeySchema[0].AttributeName) == KeyAttribute {
		return nil
	}
	return fmt.Errorf("%w: dynamo: the table's key is not one hash key %q", stores.ErrMisconfigured, KeyAttribute)
}

// unknownOrSet reports that the engine has no time to live, or that it is enabled already.
// Engines say the former in their own ways, some of them without an exception's code.
func unknownOrSet(err error) bool {
	code := codeOf(err)
	if code == "ValidationException" {
		return strings.Contains(err.Error(), "already enabled")
	}
	return code == "UnknownOperationException" || statusOf(err) == 400 && !misconfigured[code]
}
