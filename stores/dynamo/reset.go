package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sallyport/sallyport/stores"
)

// Reset implements stores.Resetter by one DeleteItem.
func (s *Store) Reset(ctx context.Context, hit stores.Hit) error {
	if err := s.admit(ctx, hit); err != nil {
		return err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	began := s.clock.read()
	s.hints.forget(hit.Key)
	var p progress
	_, err := s.client.DeleteItem(p.watch(ctx), &dynamodb.DeleteItemInput{TableName: &s.table, Key: s.key(hit.Key)}, s.optFns...)
	if err == nil {
		return nil
	}
	s.observe(ctx, dateOf(err), began)
	return classify(deleteItem, hit.Key, err, p.unsent(), p.reused.Load())
}
