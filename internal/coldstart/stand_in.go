package main

import (
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/internal/upstashtest"
)

// standIns are the servers behind the programs: the doubles that the tests use.
type standIns struct {
	upstash, dynamo *standIn
	redis           *upstashtest.Server
	starts          int
}

func newStandIns() (*standIns, error) {
	redis, err := upstashtest.Serve("127.0.0.1:0", "", upstashtest.DefaultToken)
	if err != nil {
		return nil, err
	}
	s := &standIns{redis: redis}
	engine, err := dynamotest.Start()
	if err == nil {
		s.upstash, err = newStandIn(http.DefaultTransport, strings.TrimPrefix(redis.URL, "http://"))
	}
	if err == nil {
		s.dynamo, err = newStandIn(engine.Transport(), "dynamodb.us-east-1.amazonaws.com")
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *standIns) close() {
	s.upstash.close()
	s.dynamo.close()
	s.redis.Close()
}

// environment is all that a program with this store finds there. Each start has a secret
// of its own and so a key of its own: each is the first hit on a key.
func (s *standIns) environment(store string) []string {
	s.starts++
	env := []string{fmt.Sprintf("SALLYPORT_KEY_SECRET=%032d", s.starts), "AWS_REGION=" + dynamotest.Region}
	switch store {
	case "upstash":
		return append(env, "UPSTASH_REDIS_REST_URL="+s.upstash.url, "UPSTASH_REDIS_REST_TOKEN="+upstashtest.DefaultToken)
	case "dynamo":
		return append(env, "SALLYPORT_TABLE="+dynamotest.Table, "AWS_ENDPOINT_URL_DYNAMODB="+s.dynamo.url,
			"AWS_ACCESS_KEY_ID="+dynamotest.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+dynamotest.SecretAccessKey, "AWS_SESSION_TOKEN="+dynamotest.SessionToken)
	}
	return env
}

// sum is what the store was asked so far.
func (s *standIns) sum(store string) spent {
	switch store {
	case "upstash":
		return s.upstash.sum()
	case "dynamo":
		return s.dynamo.sum()
	}
	return spent{}
}

// standIn serves a double of a service on loopback, and knows how long the double took.
type standIn struct {
	double http.RoundTripper
	host   string // of the double
	url    string
	server *http.Server

	mu    sync.Mutex
	spent spent
}

// spent is what the calls of a store took of the double's time.
type spent struct {
	calls int
	time  time.Duration
}

func newStandIn(double http.RoundTripper, host string) (*standIn, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &standIn{double: double, host: host, url: "http://" + listener.Addr().String()}
	s.server = &http.Server{Handler: s}
	go func() { _ = s.server.Serve(listener) }() // it ends by Close
	return s, nil
}

func (s *standIn) close() {
	if s != nil {
		_ = s.server.Close()
	}
}

func (s *standIn) sum() spent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spent
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	status, header, body, err := s.ask(r)
	s.mu.Lock()
	s.spent.calls++
	s.spent.time += time.Since(begun)
	s.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	maps.Copy(w.Header(), header)
	// DynamoDB sends it, and the SDK logs a warning for each answer without.
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func (s *standIn) ask(r *http.Request) (int, http.Header, []byte, error) {
	on := r.Clone(r.Context())
	on.URL.Scheme, on.URL.Host, on.Host, on.RequestURI = "http", s.host, s.host, ""
	resp, err := s.double.RoundTrip(on)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, body, err
}
