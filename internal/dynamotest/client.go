package dynamotest

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// The credentials with which the clients sign. Nothing that a store reports may
// hold one of them.
const (
	AccessKeyID     = "AKIDEXAMPLE000000000"
	SecretAccessKey = "wJalrXUtnFEMIexamplesecret0000000000000000"
	SessionToken    = "session-token-example"
	Region          = "us-east-1"
)

// Client returns a client over the in-memory transport.
func (s *Server) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return NewClient("http://dynamodb.test", s.Transport(), optFns...)
}

// NewClient returns a client of the engine at endpoint, with the credentials above
// and without the config package. A nil transport means net/http's default.
func NewClient(endpoint string, transport http.RoundTripper, optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       Region,
		BaseEndpoint: aws.String(endpoint),
		HTTPClient:   &http.Client{Transport: transport},
		Credentials:  aws.CredentialsProviderFunc(credentials),
	}, optFns...)
}

// direct reaches the engine past faults and counts.
func (s *Server) direct() *dynamodb.Client {
	return NewClient("http://dynamodb.test", roundTripper(s.engineOnly))
}
