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
	if out.Item[endAttribute] == nil {
		return t.fresh(), nil
	}
	w, ok := readWindow(out.Item)
	now := s.clock.now(began)
	switch {
	case !ok:
		return stores.Decision{}, malformed(getItem, true)
	case w.end <= now: // time to live deletes days late
		return t.fresh(), nil
	}
	d := stores.Decision{Allowed: t.cost <= t.quota-w.n, Remaining: int(max(0, t.quota-w.n))}
	until := t.wait(w.end, now)
	if w.n > 0 {
		d.ResetAfter = until
	}
	if !d.Allowed && t.cost <= t.quota {
		d.RetryAfter = until
	}
	return d, nil
}

// fresh is what a key without a window is worth.
func (t *taking) fresh() stores.Decision {
	return stores.Decision{Allowed: t.cost <= t.quota, Remaining: int(t.quota)}
}
