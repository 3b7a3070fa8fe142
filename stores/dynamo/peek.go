package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sallyport/sallyport/stores"
)

// Peek implements stores.Peeker by one strongly consistent GetItem. Unlike Take it
// asks also about a cost above the quota, for the sake of Remaining.
func (s *Store) Peek(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	if err := s.admit(ctx, hit); err != nil {
		return stores.Decision{}, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	began := s.clock.read()
	var p progress
	out, err := s.client.GetItem(p.watch(ctx), &dynamodb.GetItemInput{
		TableName: &s.table, Key: s.key(hit.Key), ConsistentRead: aws.Bool(true),
	}, s.optFns...)
	if err != nil {
		s.observe(ctx, dateOf(err), began)
		return stores.Decision{}, classify(getItem, hit.Key, err, p.unsent(), p.reused.Load())
	}
	if out == nil {
		return stores.Decision{}, malformed(getItem, false)
	}
	date, _ := awsmiddleware.GetServerTime(out.ResultMetadata)
	s.observe(ctx, date, began)

	t := newTaking(s, hit)
	seen, ok := t.read(out.Item)
	if !ok {
		return stores.Decision{}, malformed(getItem, true)
	}
	a := t.peek(&seen, t.cost, t.now(began))
	if a.Allowed && a.Remaining == t.rule.Quota {
		a.Reset = 0 // a window that is open and empty takes nothing from the quota
	}
	return t.decision(a), nil
}
