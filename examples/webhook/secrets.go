package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// secretVariables can be read from Parameter Store. They stand there, as they would in
// the environment, by these names.
var secretVariables = []string{
	"SALLYPORT_KEY_SECRET",
	"SALLYPORT_WEBHOOK_SECRET",
	"SALLYPORT_WEBHOOK_SECRET_NEXT",
	"UPSTASH_REDIS_REST_TOKEN",
}

// shortestKeySecret is in bytes; it is what "openssl rand -hex 32" is half of. With less,
// whoever reads the store could guess the secret, and then the addresses.
const shortestKeySecret = 32

// readSecrets fills in, if SALLYPORT_SECRETS names a path in AWS's Parameter Store, the
// variables that stand there. Lambda's own environment is no safe: whoever may call
// lambda:GetFunctionConfiguration reads it. That of this process he does not see.
//
// Who gives a path has said where his secrets are. So it is an error if a secret stands
// in both places, if it is no SecureString, and if there is none for the hash of keys.
// No error holds a value.
func readSecrets() error {
	path := os.Getenv("SALLYPORT_SECRETS")
	if path == "" {
		return nil
	}
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return errors.New(`SALLYPORT_SECRETS: want a path such as "/sallyport/webhook"`)
	}
	values, err := readParameters(path, secretVariables)
	if err != nil {
		return fmt.Errorf("SALLYPORT_SECRETS: %w", err)
	}
	for _, name := range secretVariables {
		value, found := values[name]
		value = strings.TrimRight(value, "\r\n") // of the file that it came from
		switch {
		case !found:
			if name == "SALLYPORT_KEY_SECRET" {
				return fmt.Errorf("SALLYPORT_SECRETS: there is no %s/%s", path, name)
			}
			continue // whoever needs it misses it
		case os.Getenv(name) != "":
			return fmt.Errorf("SALLYPORT_SECRETS: %s stands under the path and in the environment; remove one", name)
		case name == "SALLYPORT_KEY_SECRET" && len(value) < shortestKeySecret:
			return fmt.Errorf("SALLYPORT_SECRETS: %s/%s has %d bytes; want %d or more, such as the output of \"openssl rand -hex 32\"", path, name, len(value), shortestKeySecret)
		}
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("SALLYPORT_SECRETS: %s/%s can't stand in an environment", path, name)
		}
	}
	return nil
}

// readParameters asks up to three times. When a burst of instances starts, Parameter
// Store throttles some of them; one that gives up at once is started again by the next
// request, and asks again.
func readParameters(path string, names []string) (map[string]string, error) {
	store, err := parameterStoreFromEnv()
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		values, again, err := store.read(path, names)
		if err == nil || !again || try == 3 {
			return values, err
		}
		time.Sleep(time.Duration(try) * 200 * time.Millisecond)
	}
}
