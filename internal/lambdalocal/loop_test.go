//go:build unix

package lambdalocal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
)

const secret = "a secret of the sender"

func countedIn(s *upstashtest.Server, env ...string) []string {
	return append(env, "UPSTASH_REDIS_REST_URL="+s.URL, "UPSTASH_REDIS_REST_TOKEN="+s.Token, "SALLYPORT_KEY_SECRET=example", "SALLYPORT_LIMIT=5/1h")
}

// delivery is a signed webhook as an HTTP API hands it to the function.
func delivery(t *testing.T, n int, address, claim string) []byte {
	body := fmt.Sprintf(`{"type":"ping","n":%d,"from":%q}`, n, address)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	ev := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /webhook", RawPath: "/webhook", Body: body,
		Headers: map[string]string{"content-type": "application/json", "x-signature": hex.EncodeToString(mac.Sum(nil)), "x-forwarded-for": claim},
	}
	ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.SourceIP = "POST", address
	ev.RequestContext.DomainName, ev.RequestContext.Stage = "id.execute-api.us-east-1.amazonaws.com", "$default"
	b, err := json.Marshal(ev)
	require.NoError(t, err)
	return b
}

// Twenty deliveries of one address at a limit of five, and then another's first.
func TestWebhookLoop(t *testing.T) {
	store := upstashtest.New(t)
	f := start(t, "webhook", countedIn(store, "SALLYPORT_WEBHOOK_SCHEME=hmac:X-Signature", "SALLYPORT_WEBHOOK_SECRET="+secret)...)
	send := func(n int, address string) events.APIGatewayV2HTTPResponse {
		began := time.Now()
		var answer events.APIGatewayV2HTTPResponse
		body := f.invoke(delivery(t, n, address, fmt.Sprint("198.51.100.", n)))
		require.NoError(t, json.Unmarshal(body, &answer), "%s", body)
		t.Logf("%3d  %-13s %d  Retry-After %-5s RateLimit %-24s %5.1f ms", n, address, answer.StatusCode,
			answer.Headers["Retry-After"], answer.Headers["Ratelimit"], float64(time.Since(began).Microseconds())/1000)
		return answer
	}
	statuses := map[int]int{}
	for n := range 20 {
		answer := send(n+1, "203.0.113.9")
		statuses[answer.StatusCode]++
		require.Equal(t, n < 5, answer.Headers["Retry-After"] == "")
	}
	require.Equal(t, map[int]int{200: 5, 429: 15}, statuses)
	require.Equal(t, 200, send(21, "203.0.113.10").StatusCode, "others are still served")
	require.NotContains(t, f.log.String(), "203.0.113", "no address is logged")
}

// A tenant's twelve jobs in two batches at a limit of five, and another's two.
func TestQueueLoop(t *testing.T) {
	store := upstashtest.New(t)
	f := start(t, "sqs", countedIn(store)...)
	again := func(tenants map[string][]string) (ids []string) {
		var batch events.SQSEvent
		for tenant, jobs := range tenants {
			for _, id := range jobs {
				batch.Records = append(batch.Records, events.SQSMessage{
					MessageId: id, Body: "{}", EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:123456789012:jobs",
					Attributes:        map[string]string{"ApproximateReceiveCount": "1"},
					MessageAttributes: map[string]events.SQSMessageAttribute{"tenant": {DataType: "String", StringValue: &tenant}},
				})
			}
		}
		b, err := json.Marshal(batch)
		require.NoError(t, err)
		var response events.SQSEventResponse
		body := f.invoke(b)
		require.NoError(t, json.Unmarshal(body, &response), "%s", body)
		t.Logf("%d messages: %s", len(batch.Records), body)
		for _, failure := range response.BatchItemFailures {
			ids = append(ids, failure.ItemIdentifier)
		}
		return ids
	}
	require.Empty(t, again(map[string][]string{"ann": {"a1", "a2", "a3", "a4"}}))
	require.ElementsMatch(t, []string{"a6", "a7", "a8", "a9", "a10", "a11", "a12"},
		again(map[string][]string{"ann": {"a5", "a6", "a7", "a8", "a9", "a10", "a11", "a12"}, "bob": {"b1", "b2"}}))
}
