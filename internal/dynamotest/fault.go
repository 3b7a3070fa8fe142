package dynamotest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Fault says which calls go wrong, and how.
type Fault struct {
	Action string // API action ("UpdateItem"); "" means every one
	Key    string // of the item; "" means every one
	Skip   int    // so many fitting calls pass unharmed first
	Times  int    // so many calls are hit; 0 means all until ClearFaults
	Do     Manner
}

// Manner is what happens to one call. apply lets the engine carry it out and
// returns its reply; a Manner that does not call it leaves the table as it was. An
// error cuts the connection, or reports the end of ctx.
type Manner func(ctx context.Context, apply func() Reply) (Reply, error)

// Reply is an answer on its way back.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
	Cut    bool // only the first half of the body is sent, then the connection breaks
	Stall  bool // only the first half of the body is sent, and nothing more
}

var errCut = errors.New("dynamotest: connection cut")

type armed struct {
	Fault
	seen, hit int
}

// SetFault adds a fault. Of several that fit a call, the first one set is met.
func (s *Server) SetFault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &armed{Fault: f})
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// next counts the call and returns the manner that it meets, or nil.
func (s *Server) next(action, key string) Manner {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[action]++
	for _, f := range s.faults {
		if f.Action != "" && f.Action != action || f.Key != "" && f.Key != key {
			continue
		}
		if f.seen++; f.seen <= f.Skip || f.Times > 0 && f.hit >= f.Times {
			continue
		}
		f.hit++
		return f.Do
	}
	return nil
}

// DropBefore cuts the connection after the request was read and before it is
// carried out.
func DropBefore() Manner {
	return func(context.Context, func() Reply) (Reply, error) { return Reply{}, errCut }
}

// DropAfter carries the request out and cuts the connection instead of answering.
func DropAfter() Manner {
	return func(_ context.Context, apply func() Reply) (Reply, error) {
		apply()
		return Reply{}, errCut
	}
}

// Hang reads the request and does nothing more, until the caller gives up.
func Hang() Manner {
	return func(ctx context.Context, _ func() Reply) (Reply, error) {
		<-ctx.Done()
		return Reply{}, ctx.Err()
	}
}

// HangAfter carries the request out and keeps the answer to itself.
func HangAfter() Manner {
	return func(ctx context.Context, apply func() Reply) (Reply, error) {
		apply()
		<-ctx.Done()
		return Reply{}, ctx.Err()
	}
}

// Slow waits before it carries the request out, unless the caller gives up first.
func Slow(d time.Duration) Manner {
	return func(ctx context.Context, apply func() Reply) (Reply, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return apply(), nil
		case <-ctx.Done():
			return Reply{}, ctx.Err()
		}
	}
}

// Fail answers with an exception and does not carry the request out.
func Fail(status int, code, message string) Manner {
	return failure(status, map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + code, "message": message})
}

// FailAfter is Fail after the request was carried out.
func FailAfter(status int, code, message string) Manner {
	fail := Fail(status, code, message)
	return func(ctx context.Context, apply func() Reply) (Reply, error) {
		apply()
		return fail(ctx, apply)
	}
}

// Throttle answers with a throttling exception (ThrottlingException,
// ProvisionedThroughputExceededException, RequestLimitExceeded) and its reasons
// ("TableWriteKeyRangeThroughputExceeded").
func Throttle(code string, reasons ...string) Manner {
	body := map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#" + code, "message": "Throughput exceeds the current capacity."}
	var list []map[string]string
	for _, reason := range reasons {
		list = append(list, map[string]string{"reason": reason, "resource": "arn:aws:dynamodb:us-east-1:123456789012:table/" + Table})
	}
	if list != nil {
		body["throttlingReasons"] = list
		body["ThrottlingReasons"] = list
	}
	return failure(http.StatusBadRequest, body)
}

func failure(status int, body map[string]any) Manner {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err) // of strings only
	}
	return Raw(status, "application/x-amz-json-1.0", string(encoded))
}

// Raw answers with any body, and does not carry the request out.
func Raw(status int, contentType, body string) Manner {
	return func(context.Context, func() Reply) (Reply, error) {
		header := http.Header{"Content-Type": {contentType}}
		return Reply{Status: status, Header: header, Body: []byte(body)}, nil
	}
}
