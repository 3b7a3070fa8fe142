//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
)

// metricLine is what the alarms of template.yaml see of a line.
type metricLine struct {
	AWS                                                   *struct{} `json:"_aws"`
	FunctionName, Policy                                  string
	Requests, Allowed, Refused, Local, Remembered, HungUp int
}

// metrics are the sums of what the function has written, of all requests and of its
// policy.
func metrics(t *testing.T, f *function) (requests, policy metricLine) {
	t.Helper()
	for text := range strings.Lines(f.log.String()) {
		var line metricLine
		if json.Unmarshal([]byte(text), &line) != nil || line.AWS == nil {
			continue
		}
		require.Equal(t, "webhook-fn", line.FunctionName)
		sum := &requests
		if line.Policy != "" {
			require.Equal(t, "webhook", line.Policy, "the alarm asks for it by this name")
			sum = &policy
		}
		sum.Requests += line.Requests
		sum.Allowed += line.Allowed
		sum.Refused += line.Refused
		sum.Local += line.Local
		sum.Remembered += line.Remembered
	}
	return requests, policy
}

// The function writes what the alarms look at. When the store is away it answers 503
// before it asks the limit, so that nothing shows as decided locally: the other alarm,
// on server errors, is for that.
func TestMetrics(t *testing.T) {
	store := upstashtest.New(t)
	f := start(t, append(upstashEnv(store), "SALLYPORT_LIMIT=2/1h", "AWS_LAMBDA_FUNCTION_NAME=webhook-fn")...)
	require.Equal(t, map[int]int{200: 2, 429: 3}, flood(t, 5, "203.0.113.1", f))
	store.SetDown(true)
	require.Equal(t, map[int]int{503: 10}, flood(t, 10, "203.0.113.2", f))

	// The lines come through a pipe of their own, maybe after the answers.
	require.Eventually(t, func() bool {
		requests, policy := metrics(t, f)
		return requests.Requests == 5 && policy.Allowed == 2 && policy.Refused == 3
	}, patience, patience/1000)
	requests, policy := metrics(t, f)
	require.Equal(t, metricLine{Requests: 5, Refused: 3}, requests)
	require.Equal(t, metricLine{Allowed: 2, Refused: 3, Remembered: 2}, policy)
}
