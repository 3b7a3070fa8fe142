package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// patience is when a start counts as failed.
const patience = 30 * time.Second

// race starts every program n times. The rounds go through all programs, and each
// begins with another one, so that what else the machine does meets all of them alike.
func race(dir string, rows []*row, n int) error {
	if n == 0 {
		return nil
	}
	stand, err := newStandIns()
	if err != nil {
		return err
	}
	defer stand.close()
	// A round that is not measured: it fills the file cache, and the doubles warm up.
	for round := range n + 1 {
		for i := range rows {
			r := rows[(round+i)%len(rows)]
			took, err := stand.start(bootstrap(dir, r.variant), r.variant)
			if err != nil {
				return fmt.Errorf("%s: %w", r.folder, err)
			}
			if round > 0 {
				r.times = append(r.times, took)
			}
		}
	}
	return nil
}

// first is what the Runtime API was told first, and when.
type first struct {
	at   time.Time
	path string
	body []byte
}

// start runs a program until it has answered one event, and returns how long that took,
// without what the double of its store took.
func (s *standIns) start(path string, v variant) (time.Duration, error) {
	answers := make(chan first, 1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	api := &http.Server{Handler: runtimeAPI(answers)}
	go func() { _ = api.Serve(listener) }() // it ends by Close
	defer func() { _ = api.Close() }()

	var log bytes.Buffer
	cmd := exec.Command(path)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Env = append(s.environment(v.store), "AWS_LAMBDA_RUNTIME_API="+listener.Addr().String())
	before := s.sum(v.store)
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	select {
	case answer := <-answers:
		_ = cmd.Process.Kill() // it may have ended
		<-exited
		if err := expect(answer, v); err != nil {
			return 0, fmt.Errorf("%w\n%s", err, &log)
		}
		after := s.sum(v.store)
		if n := after.calls - before.calls; v.store != "" && n != 1 {
			return 0, fmt.Errorf("%d calls of the store, want 1", n)
		}
		return answer.at.Sub(begun) - (after.time - before.time), nil
	case err := <-exited:
		return 0, fmt.Errorf("it ended by itself: %w\n%s", err, &log)
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		<-exited
		return 0, fmt.Errorf("no answer in %v\n%s", patience, &log)
	}
}

// expect checks that the program did what it is measured for. A fallback that decided
// because the stand-in was not understood would be fast and mean nothing.
func expect(answer first, v variant) error {
	var response events.APIGatewayV2HTTPResponse
	if !strings.HasSuffix(answer.path, "/response") {
		return fmt.Errorf("%s: %s", answer.path, answer.body)
	}
	if err := json.Unmarshal(answer.body, &response); err != nil {
		return err
	}
	want := map[string]string{"": "local", "upstash": "shared", "dynamo": "shared"}[v.store]
	if v.folder == "bare" {
		want = "bare"
	}
	if response.StatusCode != http.StatusOK || response.Body != want {
		return fmt.Errorf("status %d, decided by %q; want 200 by %q", response.StatusCode, response.Body, want)
	}
	return nil
}

// runtimeAPI hands out one event, and keeps the program waiting for a second one
// (https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html).
func runtimeAPI(answers chan<- first) http.Handler {
	event, err := json.Marshal(delivery())
	given := false // asked by one program, in turn
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/invocation/next") {
			at := time.Now()
			body, readErr := io.ReadAll(r.Body)
			if err := errors.Join(err, readErr); err != nil {
				body = []byte(err.Error())
			}
			select {
			case answers <- first{at, r.URL.Path, body}:
			default:
			}
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if given {
			<-r.Context().Done()
			return
		}
		given = true
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(5*time.Second).UnixMilli()))
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:coldstart")
		_, _ = w.Write(event)
	})
}

// delivery is a small POST as an HTTP API hands it on.
func delivery() events.APIGatewayV2HTTPRequest {
	const id = "example.execute-api.us-east-1.amazonaws.com"
	return events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /webhook", RawPath: "/webhook",
		Headers: map[string]string{"content-type": "application/json", "host": id, "x-forwarded-for": "203.0.113.1"},
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			DomainName: id, Stage: "$default",
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: "POST", Path: "/webhook", Protocol: "HTTP/1.1", SourceIP: "203.0.113.1"},
		},
		Body: `{"type":"ping"}`,
	}
}
