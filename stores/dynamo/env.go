package dynamo

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sallyport/sallyport/stores"
)

// FromEnv returns a Store for the table SALLYPORT_TABLE, with what Lambda puts into
// the environment: AWS_REGION (or AWS_DEFAULT_REGION), AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN. AWS_ENDPOINT_URL_DYNAMODB (or
// AWS_ENDPOINT_URL) leads to another endpoint: by https, or by http on loopback, for
// a local engine. AWS's config package is not used: it would double the size that
// DynamoDB adds to a binary.
//
// Credentials of containers, web identity, profiles and IMDS are not served. There,
// make a client with the config package and hand it to New.
//
// The error wraps stores.ErrMisconfigured and names the variable. No call is made.
func FromEnv() (*Store, error) {
	table, err := required("SALLYPORT_TABLE", "the table's name")
	if err != nil {
		return nil, err
	}
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if region == "" {
		return nil, fmt.Errorf("%w: dynamo: neither AWS_REGION nor AWS_DEFAULT_REGION is set", stores.ErrMisconfigured)
	}
	const elsewhere = "a static key; for credentials of containers, web identity, profiles or IMDS give New a client from AWS's config package"
	id, err := required("AWS_ACCESS_KEY_ID", elsewhere)
	if err != nil {
		return nil, err
	}
	secret, err := required("AWS_SECRET_ACCESS_KEY", elsewhere)
	if err != nil {
		return nil, err
	}
	endpoint, err := endpointFromEnv()
	if err != nil {
		return nil, err
	}
	credentials := aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: os.Getenv("AWS_SESSION_TOKEN"), Source: "environment"}
	return New(Config{Table: table, Client: dynamodb.New(dynamodb.Options{
		Region:       region,
		BaseEndpoint: endpoint,
		HTTPClient:   httpClient(),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return credentials, nil
		}),
	})})
}

func required(name, what string) (string, error) {
	value := os.Getenv(name)
	if value == "" {
		return "", fmt.Errorf("%w: dynamo: %s is not set: want %s", stores.ErrMisconfigured, name, what)
	}
	return value, nil
}

// endpointFromEnv returns nil where the service's own endpoint is wanted.
func endpointFromEnv() (*string, error) {
	name := "AWS_ENDPOINT_URL_DYNAMODB"
	value := os.Getenv(name)
	if value == "" {
		name = "AWS_ENDPOINT_URL"
		value = os.Getenv(name)
	}
	if value == "" || os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") == "true" {
		return nil, nil
	}
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%w: dynamo: %s is no plain URL", stores.ErrMisconfigured, name)
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return &value, nil
	}
	return nil, fmt.Errorf("%w: dynamo: %s: want https, or http on loopback: the session token travels in each request", stores.ErrMisconfigured, name)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// httpClient returns one that survives freeze and thaw: it lets go of idle connections
// before the service or a NAT does. It follows no redirect, which would send the request
// a second time. HTTP/1.1 is what the service speaks.
func httpClient() *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 2 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout: 2 * time.Second,
			MaxIdleConns:        128,
			MaxIdleConnsPerHost: 128,
			IdleConnTimeout:     5 * time.Second,
			Protocols:           protocols,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
