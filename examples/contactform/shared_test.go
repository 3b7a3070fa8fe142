package main

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/internal/upstashtest"
)

func upstashEnv(s *upstashtest.Server) []string {
	return []string{"UPSTASH_REDIS_REST_URL=" + s.URL, "UPSTASH_REDIS_REST_TOKEN=" + s.Token, "SALLYPORT_KEY_SECRET=example"}
}

func dynamoEnv(url string) []string {
	return []string{
		"SALLYPORT_TABLE=" + dynamotest.Table, "AWS_ENDPOINT_URL_DYNAMODB=" + url, "AWS_REGION=" + dynamotest.Region,
		"AWS_ACCESS_KEY_ID=" + dynamotest.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + dynamotest.SecretAccessKey,
		"SALLYPORT_KEY_SECRET=example",
	}
}

func TestInstancesShareTheLimit(t *testing.T) {
	tests := []struct {
		name string
		env  func(t *testing.T) []string
	}{
		{"upstash", func(t *testing.T) []string { return upstashEnv(upstashtest.New(t)) }},
		{"upstash over redis-server", func(t *testing.T) []string { return upstashEnv(upstashtest.NewReal(t)) }},
		{"dynamodb in process", func(t *testing.T) []string { return dynamoEnv(dynamotest.New(t).Listen(t)) }},
		{"dynalite", func(t *testing.T) []string { return dynamoEnv(*dynamotest.Dynalite(t).Options().BaseEndpoint) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			env := test.env(t)
			a, b := start(t, env...), start(t, env...)
			for i := range 3 {
				offender := newVisitor(fmt.Sprintf("127.0.0.%d", 10+i))
				require.Equal(t, map[int]int{sent: 5, 429: 75}, offender.flood(t, 40, a, b))
				require.Equal(t, sent, newVisitor(fmt.Sprintf("127.0.1.%d", 10+i)).post(t, a).StatusCode, "others are served")
			}
			// A new instance knows at once.
			require.Equal(t, 429, newVisitor("127.0.0.10").post(t, start(t, env...)).StatusCode)
			for _, p := range []*program{a, b} {
				require.NotContains(t, p.log.String(), "127.0.0.10", "no client's address is logged")
			}
		})
	}
}

// A token is worth five messages in all, however many instances it is sent to at once and
// from however many addresses.
func TestInstancesShareTheToken(t *testing.T) {
	tests := []struct {
		name string
		env  func(t *testing.T) []string
	}{
		{"upstash", func(t *testing.T) []string { return upstashEnv(upstashtest.New(t)) }},
		{"dynamodb in process", func(t *testing.T) []string { return dynamoEnv(dynamotest.New(t).Listen(t)) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			env := append(test.env(t), "SALLYPORT_LIMIT=1000/10m")
			programs := []*program{start(t, env...), start(t, env...)}
			stolen := goodForm()
			statuses := make(chan int, 80)
			var group sync.WaitGroup
			for n := range 8 {
				thief := newVisitor(fmt.Sprintf("127.0.0.%d", 10+n))
				group.Go(func() {
					for i := range 10 {
						a, err := thief.try("POST", programs[i%2].url+"/contact", stolen, formType)
						if err == nil {
							statuses <- a.StatusCode
						}
					}
				})
			}
			group.Wait()
			close(statuses)
			got := map[int]int{}
			for status := range statuses {
				got[status]++
			}
			require.Equal(t, map[int]int{sent: 5, 409: 75}, got)
			for _, p := range programs {
				require.Equal(t, sent, newVisitor("127.0.1.1").post(t, p).StatusCode, "others are served")
			}
		})
	}
}

func TestHealthAsksNoStore(t *testing.T) {
	store := upstashtest.New(t)
	p := start(t, upstashEnv(store)...)
	store.SetDown(true)
	v := newVisitor("127.0.0.1")
	v.post(t, p)
	asked := store.Requests()
	v = newVisitor("127.0.0.1")
	for range 100 {
		require.Equal(t, 200, v.do(t, "GET", p.url+"/healthz", "").StatusCode)
		require.Equal(t, 200, v.do(t, "GET", p.url+"/", "").StatusCode)
	}
	require.Equal(t, asked, store.Requests())
	require.NotContains(t, p.log.String(), "fails", "and so nobody noticed")
}

// Whatever the store does wrong, the limit holds and the honest visitor is
// served.
func TestBrokenStore(t *testing.T) {
	tests := []struct {
		name string
		harm func(s *upstashtest.Server)
	}{
		{"down", func(s *upstashtest.Server) { s.SetDown(true) }},
		{"hanging", func(s *upstashtest.Server) { s.SetDelay(time.Hour) }},
		{"500", func(s *upstashtest.Server) { s.SetAnswer(&upstashtest.Answer{Status: 500, Body: "oops"}) }},
		{"a page instead of an answer", func(s *upstashtest.Server) {
			s.SetAnswer(&upstashtest.Answer{Status: 200, ContentType: "text/html", Body: "<html>login</html>"})
		}},
		{"an answer to another question", func(s *upstashtest.Server) {
			s.SetAnswer(&upstashtest.Answer{Status: 200, ContentType: "application/json", Body: `[{"result":"OK"}]`})
		}},
		{"a wrong token", func(s *upstashtest.Server) {
			s.SetAnswer(&upstashtest.Answer{Status: 401, ContentType: "application/json", Body: `{"error":"WRONGPASS invalid or missing auth token"}`})
		}},
		{"out of quota", func(s *upstashtest.Server) {
			s.SetSlotError("*", "ERR max requests limit exceeded. Limit: 500000, Usage: 500000.")
		}},
		{"cut after counting", func(s *upstashtest.Server) { s.CutAfterApply(1 << 30) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := upstashtest.New(t)
			p := start(t, upstashEnv(store)...)
			test.harm(store)
			offender := newVisitor("127.0.0.10")
			require.Equal(t, map[int]int{sent: 5, 429: 35}, offender.flood(t, 40, p))
			require.Equal(t, sent, newVisitor("127.0.0.11").post(t, p).StatusCode)
			require.Equal(t, 429, offender.post(t, p).StatusCode)
			require.Contains(t, p.log.String(), "the shared store fails", "the operator hears of it")
			require.NotContains(t, p.log.String(), store.Token)
		})
	}
}

// The same for a table.
func TestBrokenTable(t *testing.T) {
	raw := func(status int, body string) dynamotest.Manner {
		return dynamotest.Raw(status, "application/x-amz-json-1.0", body)
	}
	tests := []struct {
		name string
		do   dynamotest.Manner
	}{
		{"cut before it counts", dynamotest.DropBefore()},
		{"cut after it has counted", dynamotest.DropAfter()},
		{"hanging", dynamotest.Hang()},
		{"hanging after it has counted", dynamotest.HangAfter()},
		{"500", dynamotest.Fail(500, "InternalServerError", "oops")},
		{"throttled table", dynamotest.Throttle("ThrottlingException", "TableWriteProvisionedThroughputExceeded")},
		{"throttled key", dynamotest.Throttle("ThrottlingException", "TableWriteKeyRangeThroughputExceeded")},
		{"no such table", dynamotest.Fail(400, "ResourceNotFoundException", "Requested resource not found")},
		{"no rights", dynamotest.Fail(400, "AccessDeniedException", "not authorized")},
		{"expired credentials", dynamotest.Fail(400, "ExpiredTokenException", "The security token included in the request is expired")},
		{"bad expression", dynamotest.Fail(400, "ValidationException", "Invalid UpdateExpression")},
		{"a page instead of an answer", dynamotest.Raw(200, "text/html", "<html>login</html>")},
		{"nothing", raw(200, "")},
		{"an answer without the item", raw(200, "{}")},
		{"a failed condition without the item", dynamotest.Fail(400, "ConditionalCheckFailedException", "The conditional request failed")},
		{"half an answer", dynamotest.CutBody()},
		{"an answer that does not end", dynamotest.StallBody()},
		{"numbers that are none", dynamotest.Lie(func(item map[string]any) {
			for name := range item {
				item[name] = map[string]any{"N": "9e99"}
			}
		})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			table := dynamotest.New(t)
			p := start(t, dynamoEnv(table.Listen(t))...)
			table.SetFault(dynamotest.Fault{Do: test.do})
			offender := newVisitor("127.0.0.10")
			require.Equal(t, map[int]int{sent: 5, 429: 35}, offender.flood(t, 40, p))
			require.Equal(t, sent, newVisitor("127.0.0.11").post(t, p).StatusCode)
			require.Equal(t, 429, offender.post(t, p).StatusCode)
			for _, secret := range []string{dynamotest.SecretAccessKey, "127.0.0.10"} {
				require.NotContains(t, p.log.String(), secret)
			}
		})
	}
}

func TestStoreIsKilledAndComesBack(t *testing.T) {
	store := upstashtest.New(t)
	env := append(upstashEnv(store), "SALLYPORT_INSTANCES=2")
	a, b := start(t, env...), start(t, env...)
	old := newVisitor("127.0.0.10")
	require.Equal(t, map[int]int{sent: 5, 429: 75}, old.flood(t, 40, a, b))
	// In the first moment of a window a refusal may belong to the window before.
	store.FastForward(time.Second)
	require.Equal(t, map[int]int{429: 20}, old.flood(t, 10, a, b))

	// The store dies under a flood: calls are cut, and nobody gets a 5xx.
	before := store.Requests()
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		for end := time.Now().Add(patience); store.Requests() < before+3 && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // between two looks
		}
		store.SetDown(true)
	}()
	caught := newVisitor("127.0.0.11")
	statuses := caught.flood(t, 100, a, b)
	<-killed
	require.Equal(t, 200, statuses[sent]+statuses[429], "%v", statuses)
	require.LessOrEqual(t, statuses[sent], 5+2*2, "the quota, and what two instances grant of it again")
	require.GreaterOrEqual(t, statuses[sent], 1)

	// Now each instance grants its share of the quota, and knows whom it had refused.
	require.Equal(t, map[int]int{429: 40}, old.flood(t, 20, a, b))
	for _, p := range []*program{a, b} {
		require.Equal(t, map[int]int{sent: 2, 429: 18}, newVisitor("127.0.0.12").flood(t, 20, p))
		require.Equal(t, sent, newVisitor("127.0.0.13").post(t, p).StatusCode)
	}
	require.Equal(t, map[int]int{429: 40}, caught.flood(t, 20, a, b))

	store.SetDown(false)
	n := 0
	for _, p := range []*program{a, b} {
		require.Eventually(t, func() bool {
			before := store.Requests()
			n++
			probe := newVisitor(fmt.Sprintf("127.0.2.%d", n%250+1))
			require.Equal(t, sent, probe.post(t, p).StatusCode)
			return store.Requests() > before
		}, 10*time.Second, 50*time.Millisecond, "shared again within seconds")
	}
	require.Equal(t, map[int]int{429: 40}, old.flood(t, 20, a, b))
	require.Equal(t, map[int]int{sent: 5, 429: 75}, newVisitor("127.0.0.14").flood(t, 40, a, b))
	for _, p := range []*program{a, b} {
		require.Contains(t, p.log.String(), "the shared store is back")
	}
}
