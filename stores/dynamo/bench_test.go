package dynamo

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/internal/meter"
)

// canned answers every request alike, without a network: what is left is the SDK's
// own cost and this package's.
type canned struct {
	status int
	body   string
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{
		StatusCode: c.status, ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header:        http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}},
		Body:          io.NopCloser(strings.NewReader(c.body)),
		ContentLength: int64(len(c.body)),
	}, nil
}

var (
	cannedEnd     = time.Now().Add(time.Hour).UnixMilli()
	cannedItem    = fmt.Sprintf(`"pk":{"S":"k"},"n":{"N":"3"},"e":{"N":"%d"},"x":{"N":"%d"}`, cannedEnd, cannedEnd/1000+ttlDelay)
	cannedAllowed = `{"Attributes":{` + cannedItem + `}}`
	cannedFailed  = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed","Item":{` + cannedItem + `}}`
)

// BenchmarkSDK is the bare line: the same call without this package.
func BenchmarkSDK(b *testing.B) {
	client := dynamotest.NewClient("http://dynamodb.test", canned{200, cannedAllowed})
	s := newStore(b, client)
	t := newTaking(s, hit("k", 5, time.Minute))
	for _, bb := range []struct {
		name   string
		optFns []func(*dynamodb.Options)
	}{{"own retries", nil}, {"resend unsent only", s.optFns}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.UpdateItem(b.Context(), s.input("k", t.write(&state{State: meter.State{End: cannedEnd}}, 1)), bb.optFns...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTake(b *testing.B) {
	for _, bb := range []struct {
		name    string
		answer  canned
		quota   int
		allowed bool
	}{{"allowed", canned{200, cannedAllowed}, 5, true}, {"refused", canned{400, cannedFailed}, 3, false}} {
		b.Run(bb.name, func(b *testing.B) {
			s := newStore(b, dynamotest.NewClient("http://dynamodb.test", bb.answer))
			h := hit("k", bb.quota, 2*time.Hour)
			s.hints.learn(h.Key, cannedEnd, hint{n: 1})
			b.ReportAllocs()
			for b.Loop() {
				if d, err := s.Take(b.Context(), h); err != nil || d.Allowed != bb.allowed {
					b.Fatal(d, err)
				}
			}
		})
	}
}

func BenchmarkHints(b *testing.B) {
	w := newHints(maxHints)
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		w.learn("k", i, hint{n: 1})
		w.recall("k")
	}
}
