//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/internal/upstashtest"
)

func upstashEnv(s *upstashtest.Server) []string {
	return []string{"UPSTASH_REDIS_REST_URL=" + s.URL, "UPSTASH_REDIS_REST_TOKEN=" + s.Token, "SALLYPORT_KEY_SECRET=example", "SALLYPORT_WEBHOOK_SECRET=" + secret}
}

func dynamoEnv(url string) []string {
	return []string{
		"SALLYPORT_TABLE=" + dynamotest.Table, "AWS_ENDPOINT_URL_DYNAMODB=" + url, "AWS_REGION=" + dynamotest.Region,
		"AWS_ACCESS_KEY_ID=" + dynamotest.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + dynamotest.SecretAccessKey,
		"AWS_SESSION_TOKEN=" + dynamotest.SessionToken, "SALLYPORT_KEY_SECRET=example", "SALLYPORT_WEBHOOK_SECRET=" + secret,
	}
}

// from is a new delivery from an address, which claims in a header to be another.
func from(t *testing.T, address, claim string) []byte {
	t.Helper()
	return sentBy(t, delivered(t, newID(), `{"type":"ping"}`), address, claim)
}

func sentBy(t *testing.T, event events.APIGatewayV2HTTPRequest, address, claim string) []byte {
	t.Helper()
	event.RequestContext.HTTP.SourceIP = address
	event.Headers["x-forwarded-for"] = claim
	text, err := json.Marshal(event)
	require.NoError(t, err)
	return text
}

// flood invokes the functions in turn, n times each, and counts the statuses.
func flood(t *testing.T, n int, address string, functions ...*function) map[int]int {
	t.Helper()
	statuses := map[int]int{}
	for i := range n {
		for _, f := range functions {
			response := f.invoke(from(t, address, fmt.Sprintf("198.51.100.%d", i%256)))
			statuses[response.StatusCode]++
			if response.StatusCode == http.StatusTooManyRequests {
				wait, err := strconv.Atoi(response.Headers["Retry-After"])
				require.NoError(t, err)
				require.GreaterOrEqual(t, wait, 1)
				require.Equal(t, fmt.Sprintf(`"webhook";r=0;t=%d`, wait), response.Headers["Ratelimit"])
				require.Equal(t, "no-store", response.Headers["Cache-Control"])
			}
		}
	}
	return statuses
}

func TestDefaultLimit(t *testing.T) {
	f := start(t, upstashEnv(upstashtest.New(t))...)
	require.Equal(t, map[int]int{200: 60, 429: 10}, flood(t, 70, "203.0.113.1", f))
	require.Equal(t, 200, f.invoke(from(t, "203.0.113.2", "203.0.113.1")).StatusCode)
	require.NotContains(t, f.log.String(), "203.0.113", "no address is logged")
	require.NotContains(t, f.log.String(), "ping", "no payload is logged")
	require.NotContains(t, f.log.String(), upstashtest.DefaultToken)
}

func TestInstancesShareTheLimit(t *testing.T) {
	tests := []struct {
		name string
		env  func(t *testing.T) []string
	}{
		{"upstash", func(t *testing.T) []string { return upstashEnv(upstashtest.New(t)) }},
		{"dynamodb in process", func(t *testing.T) []string { return dynamoEnv(dynamotest.New(t).Listen(t)) }},
		{"dynalite", func(t *testing.T) []string { return dynamoEnv(*dynamotest.Dynalite(t).Options().BaseEndpoint) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			env := append(test.env(t), "SALLYPORT_LIMIT=7/1h")
			a, b := start(t, env...), start(t, env...)
			require.Equal(t, map[int]int{200: 7, 429: 33}, flood(t, 20, "203.0.113.1", a, b))
			require.Equal(t, map[int]int{200: 2}, flood(t, 1, "203.0.113.2", a, b))
		})
	}
}

// An outage is no error of the function: it refuses, since one instance's memory does not
// know what the others have kept, and the sender tries again. What was kept before is
// known, and the limit is shared again within seconds of the store's return.
func TestStoreIsKilledAndComesBack(t *testing.T) {
	store := upstashtest.New(t)
	env := append(upstashEnv(store), "SALLYPORT_LIMIT=5/1h", "SALLYPORT_INSTANCES=2")
	a, b := start(t, env...), start(t, env...)
	before := from(t, "203.0.113.1", "")
	require.Equal(t, 200, a.invoke(before).StatusCode)
	require.Equal(t, map[int]int{200: 4, 429: 14}, flood(t, 9, "203.0.113.1", a, b))

	store.SetDown(true)
	during := from(t, "203.0.113.2", "")
	for _, f := range []*function{a, b} {
		response := f.invoke(during)
		require.Equal(t, 503, response.StatusCode)
		require.NotEmpty(t, response.Headers["Retry-After"])
	}
	require.Equal(t, map[int]int{503: 20}, flood(t, 10, "203.0.113.3", a, b))
	require.Equal(t, 200, a.invoke(before).StatusCode, "the instance that kept it knows")

	store.SetDown(false)
	for _, f := range []*function{a, b} {
		require.Eventually(t, func() bool {
			return f.invoke(during).StatusCode == 200
		}, 10*time.Second, 50*time.Millisecond)
	}
	require.Equal(t, 200, b.invoke(before).StatusCode)
	require.Equal(t, map[int]int{200: 5, 429: 35}, flood(t, 20, "203.0.113.4", a, b))
	require.Equal(t, map[int]int{429: 20}, flood(t, 10, "203.0.113.1", a, b))
	requireKept(t, 11, a, b)
}

// Several instances keep a delivery once, however often and wherever it comes.
func TestDeliveredAgain(t *testing.T) {
	for name, env := range map[string]func(t *testing.T) []string{
		"upstash":  func(t *testing.T) []string { return upstashEnv(upstashtest.New(t)) },
		"dynamodb": func(t *testing.T) []string { return dynamoEnv(dynamotest.New(t).Listen(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			env := append(env(t), "SALLYPORT_LIMIT=2/1h")
			a, b := start(t, env...), start(t, env...)
			event := from(t, "203.0.113.1", "")
			for range 10 {
				require.Equal(t, 200, a.invoke(event).StatusCode)
				require.Equal(t, 200, b.invoke(event).StatusCode)
			}
			requireKept(t, 1, a, b)
			require.Equal(t, map[int]int{200: 1, 429: 1}, flood(t, 2, "203.0.113.1", a), "what came again did not count")
		})
	}
}

// Who does not know the secret gets nothing in and costs the store nothing, also from the
// sender's own address.
func TestForgeries(t *testing.T) {
	store := upstashtest.New(t)
	f := start(t, upstashEnv(store)...)
	statuses := map[int]int{}
	for range 20 {
		event := delivered(t, newID(), `{"type":"ping"}`)
		event.Body = `{"type":"pong"}`
		statuses[f.invoke(sentBy(t, event, "203.0.113.1", "")).StatusCode]++
	}
	require.Equal(t, map[int]int{401: 10, 429: 10}, statuses)
	require.Zero(t, store.Requests())
	require.Equal(t, map[int]int{200: 5}, flood(t, 5, "203.0.113.1", f))
	requireKept(t, 5, f)
	require.NotContains(t, f.log.String(), secret)
}

// What can't be meant ends the program before it asks for an event.
func TestImpossibleConfiguration(t *testing.T) {
	const token = "AXsecret0token0example"
	upstash := []string{"UPSTASH_REDIS_REST_URL=https://double.example", "UPSTASH_REDIS_REST_TOKEN=" + token}
	dynamo := []string{"SALLYPORT_TABLE=limits", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=" + token}
	tests := []struct {
		name string
		env  []string
		says []string
	}{
		{"no store", nil, []string{"no store is configured", "SALLYPORT_TABLE", "UPSTASH_REDIS_REST_URL"}},
		{"two stores", append(upstash[:2:2], dynamo...), []string{"two stores are configured"}},
		{"half of one and the other", append(dynamo[:4:4], upstash[1]), []string{"two stores are configured", "UPSTASH_REDIS_REST_TOKEN"}},
		{"no token", upstash[:1], []string{"UPSTASH_REDIS_REST_TOKEN is missing"}},
		{"no URL", upstash[1:], []string{"UPSTASH_REDIS_REST_URL is missing"}},
		{"no KV token", []string{"KV_REST_API_URL=https://double.example"}, []string{"KV_REST_API_TOKEN is missing"}},
		{"no region", append(dynamo[:1:1], dynamo[2:]...), []string{"AWS_REGION"}},
		{"limit in words", append(upstash[:2:2], "SALLYPORT_LIMIT=sixty"), []string{"SALLYPORT_LIMIT", "sixty"}},
		{"instances", append(upstash[:2:2], "SALLYPORT_INSTANCES=-1"), []string{"SALLYPORT_INSTANCES"}},
		{"no secret", append(upstash[:2:2], "SALLYPORT_WEBHOOK_SECRET="), []string{"SALLYPORT_WEBHOOK_SECRET is missing"}},
		{"no such scheme", append(upstash[:2:2], "SALLYPORT_WEBHOOK_SCHEME=none"), []string{"SALLYPORT_WEBHOOK_SCHEME", "standard"}},
		{"a header for a scheme that has its own", append(upstash[:2:2], "SALLYPORT_WEBHOOK_SCHEME=github:X-Signature"), []string{"SALLYPORT_WEBHOOK_SCHEME"}},
		{"no header for one that wants it", append(upstash[:2:2], "SALLYPORT_WEBHOOK_SCHEME=hmac"), []string{"header of HMAC"}},
		{"a secret of another kind", append(upstash[:2:2], "SALLYPORT_WEBHOOK_SECRET="+token), []string{"secrets of standard: number 1"}},
		{"half a change", append(upstash[:2:2], "SALLYPORT_WEBHOOK_SECRET_NEXT="+token), []string{"secrets of standard: number 2"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// A Runtime API that nobody listens at: a program that went as far would say so.
			cmd, log := command(t, slices.Concat([]string{"SALLYPORT_WEBHOOK_SECRET=" + secret}, test.env, []string{"AWS_LAMBDA_RUNTIME_API=127.0.0.1:1"})...)
			done := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
			defer done.Stop()
			require.Error(t, cmd.Run())
			require.Equal(t, 1, cmd.ProcessState.ExitCode(), "%s", log)
			require.Contains(t, log.String(), "can't start")
			for _, text := range test.says {
				require.Contains(t, log.String(), text)
			}
			require.NotContains(t, log.String(), token)
			require.NotContains(t, log.String(), secret[8:])
			require.NotContains(t, log.String(), "127.0.0.1:1")
		})
	}
}
