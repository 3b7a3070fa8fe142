package main

import (
	"errors"
	"os"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/dynamo"
	"github.com/sallyport/sallyport/stores/upstash"
)

// upstashVariables are those that upstash.FromEnv reads; one of them means Upstash.
var upstashVariables = []string{
	"UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN",
	"KV_REST_API_URL", "KV_REST_API_TOKEN",
}

// openStore chooses by the environment.
//
// This example can do both. A function of yours needs one: call its FromEnv in
// newGuard, and drop this file with the other import. Without stores/dynamo no AWS SDK
// is linked.
func openStore() (stores.Store, error) {
	upstashVariable := ""
	for _, name := range upstashVariables {
		if os.Getenv(name) != "" {
			upstashVariable = name
			break
		}
	}
	switch table := os.Getenv("SALLYPORT_TABLE"); {
	case table != "" && upstashVariable != "":
		return nil, errors.New("two stores are configured: unset SALLYPORT_TABLE for Upstash, or " + upstashVariable + " (and its like) for DynamoDB")
	case table != "":
		return dynamo.FromEnv()
	case upstashVariable != "":
		return upstash.FromEnv()
	}
	return nil, errors.New("no store is configured: set SALLYPORT_TABLE for DynamoDB, or UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN for Upstash")
}
