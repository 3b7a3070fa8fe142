package main

import (
	"errors"
	"os"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/dynamo"
	"github.com/sallyport/sallyport/stores/memory"
	"github.com/sallyport/sallyport/stores/upstash"
)

// upstashVariables are those that upstash.FromEnv reads. One of them is enough to
// mean Upstash, so that a forgotten second half is an error and not a limit per
// instance.
var upstashVariables = []string{
	"UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN",
	"KV_REST_API_URL", "KV_REST_API_TOKEN",
}

// openStore chooses by the environment and says what it chose. It calls nobody.
//
// This example can do both. A program of yours needs one: keep that one's import and
// drop the other. Without stores/dynamo no AWS SDK is linked.
func openStore() (stores.Store, string, error) {
	table := os.Getenv("SALLYPORT_TABLE") != ""
	upstashVariable := ""
	for _, name := range upstashVariables {
		if os.Getenv(name) != "" {
			upstashVariable = name
			break
		}
	}
	switch {
	case table && upstashVariable != "":
		return nil, "", errors.New("two shared stores are configured: unset SALLYPORT_TABLE for Upstash, or " + upstashVariable + " (and its like) for DynamoDB")
	case upstashVariable != "":
		store, err := upstash.FromEnv()
		return store, "upstash", err
	case table:
		store, err := dynamo.FromEnv()
		return store, "dynamodb", err
	}
	store, err := memory.New(memory.Config{})
	return store, "memory, per instance", err
}
