package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/internal/upstashtest"
)

// Over each store, as the environment chooses it, two instances share a tenant's limit
// and the marks of what was paid.
func TestBothStores(t *testing.T) {
	for name, env := range map[string]func(t *testing.T) map[string]string{
		"upstash": func(t *testing.T) map[string]string {
			s := upstashtest.New(t)
			return map[string]string{"UPSTASH_REDIS_REST_URL": s.URL, "UPSTASH_REDIS_REST_TOKEN": s.Token}
		},
		"dynamodb": func(t *testing.T) map[string]string {
			return map[string]string{
				"SALLYPORT_TABLE": dynamotest.Table, "AWS_ENDPOINT_URL_DYNAMODB": dynamotest.New(t).Listen(t), "AWS_REGION": dynamotest.Region,
				"AWS_ACCESS_KEY_ID": dynamotest.AccessKeyID, "AWS_SECRET_ACCESS_KEY": dynamotest.SecretAccessKey, "AWS_SESSION_TOKEN": dynamotest.SessionToken,
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range append(upstashVariables, "SALLYPORT_TABLE") {
				t.Setenv(name, "")
			}
			t.Setenv("SALLYPORT_LIMIT", "5/1h")
			t.Setenv("SALLYPORT_KEY_SECRET", "example")
			for name, value := range env(t) {
				t.Setenv(name, value)
			}
			c := &crew{fail: func(id string) error {
				if id == "a0" {
					return errors.New("no luck")
				}
				return nil
			}}
			var instances []*Queue
			for range 2 {
				guard, err := newGuard()
				require.NoError(t, err)
				instances = append(instances, &Queue{Guard: guard, Worker: c})
			}
			require.Equal(t, []string{"a0"}, handle(t, instances[0], t.Context(), batch("ann", 1, ids("a", 3)...)))
			require.Equal(t, []string{"c2"}, handle(t, instances[1], t.Context(), batch("ann", 1, ids("c", 3)...)))
			c.fail = nil
			require.Empty(t, handle(t, instances[1], t.Context(), batch("ann", 2, "a0")), "it paid on the other instance")
			require.Equal(t, []string{"c2"}, handle(t, instances[0], t.Context(), batch("ann", 2, "c2")))
			require.ElementsMatch(t, []string{"a1", "a2", "c0", "c1", "a0"}, c.did)
		})
	}
}
