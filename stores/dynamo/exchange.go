package dynamo

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// The API actions, as they stand in errors.
const (
	updateItem = "UpdateItem"
	getItem    = "GetItem"
	deleteItem = "DeleteItem"
)

// answer is what the table said to an update.
type answer struct {
	met    bool                            // the condition held, and the update was made
	item   map[string]types.AttributeValue // as it is after the update, or before the failed condition
	agrees bool                            // it came with a Date header that the corrected clock agrees with
}

// update makes one conditional update, begun at the local time began.
func (s *Store) update(ctx context.Context, began time.Time, key string, c *call) (answer, error) {
	var p progress
	out, err := s.client.UpdateItem(p.watch(ctx), s.input(key, c), s.optFns...)
	if err == nil && out == nil {
		return answer{}, malformed(updateItem, false)
	}
	if err == nil {
		date, _ := awsmiddleware.GetServerTime(out.ResultMetadata)
		return answer{met: true, item: out.Attributes, agrees: s.observe(ctx, date, began)}, nil
	}
	agrees := s.observe(ctx, dateOf(err), began)
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return answer{item: failed.Item, agrees: agrees}, nil
	}
	return answer{}, classify(updateItem, key, err, p.unsent(), p.reused.Load())
}

func (s *Store) observe(ctx context.Context, date, began time.Time) bool {
	return !date.IsZero() && s.clock.observe(ctx, date, began)
}

// dateOf returns the Date header of an answer that the SDK made an error of; the
// SDK's metadata is lost then.
func dateOf(err error) time.Time {
	var answered *smithyhttp.ResponseError
	if !errors.As(err, &answered) || answered.Response == nil || answered.Response.Response == nil {
		return time.Time{}
	}
	date, err := http.ParseTime(answered.Response.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return date
}

// progress watches how far a call got, through net/http's own trace. It is what tells
// a dial that timed out from an answer that did: only the latter may have counted.
type progress struct {
	asked, connected, reused atomic.Bool
}

func (p *progress) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { p.connected.Store(false); p.asked.Store(true) },
		GotConn: func(c httptrace.GotConnInfo) { p.reused.Store(c.Reused); p.connected.Store(true) },
	})
}

// unsent reports that the last attempt certainly never had a connection. A transport that does
// not report to traces leaves it at false.
func (p *progress) unsent() bool { return p.asked.Load() && !p.connected.Load() }
