//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"
)

// patience is when a test stops waiting for what has to happen.
const patience = 30 * time.Second

// buildFlags are those of the program under test.
var buildFlags = []string{"build", "-tags", "lambda.norpc"}

// built is the directory of the program, shared by the tests of one run.
var built string

// build makes the program once.
var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(built, "bootstrap")
	out, err := exec.Command("go", append(buildFlags, "-o", path, ".")...).CombinedOutput()
	if err != nil {
		err = errors.Join(err, errors.New(string(out)))
	}
	return path, err
})

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if built, err = os.MkdirTemp("", "webhook"); err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(built) }()
		return m.Run()
	}())
}

// command is the program with an environment that holds only env.
func command(t *testing.T, env ...string) (*exec.Cmd, *logged) {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	cmd := exec.Command(path)
	cmd.Env = env
	cmd.Dir = t.TempDir()
	log := new(logged)
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, log
}

// logged is what a program logs.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// function is the program as Lambda runs it, behind a stand-in of the Runtime API
// (https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html).
type function struct {
	t       *testing.T
	process *os.Process
	log     *logged
	exited  chan struct{}
	frozen  func() // what happens while the process is stopped between invocations; nil: it is not

	idle   chan struct{} // the process asks for the next event
	events chan []byte
	answer chan []byte
	n      int
}

func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := strings.TrimPrefix(r.URL.Path, "/2018-06-01/runtime/"); {
	case path == "invocation/next":
		select {
		case f.idle <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		select {
		case event := <-f.events:
			f.n++
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", fmt.Sprint(f.n))
			w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(5*time.Second).UnixMilli()))
			w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:webhook")
			_, _ = w.Write(event)
		case <-r.Context().Done():
		}
	case strings.HasPrefix(path, "invocation/") && strings.HasSuffix(path, "/response"):
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the test sees no answer
		}
		f.answer <- body
		w.WriteHeader(http.StatusAccepted)
	default:
		body, _ := io.ReadAll(r.Body)
		f.answer <- fmt.Appendf(nil, "%s: %s", r.URL.Path, body)
		w.WriteHeader(http.StatusAccepted)
	}
}

// start runs the function until the test ends.
func start(t *testing.T, env ...string) *function {
	t.Helper()
	f := &function{t: t, exited: make(chan struct{}), idle: make(chan struct{}), events: make(chan []byte), answer: make(chan []byte, 1)}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	cmd, log := command(t, slices.Concat(env, []string{"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(server.URL, "http://")})...)
	f.log = log
	require.NoError(t, cmd.Start())
	f.process = cmd.Process
	go func() {
		defer close(f.exited)
		_ = cmd.Wait() // the test ends it
	}()
	t.Cleanup(func() {
		_ = f.process.Kill() // it may have ended
		<-f.exited
		if t.Failed() {
			t.Logf("log of the function:\n%s", log)
		}
		require.NotContains(t, log.String(), "DATA RACE")
		require.NotContains(t, log.String(), "panic")
	})
	return f
}

// invoke runs one event and returns the answer.
func (f *function) invoke(event []byte) events.APIGatewayV2HTTPResponse {
	f.t.Helper()
	f.await(f.idle)
	if f.frozen != nil {
		// Lambda freezes what waits for the next event, and thaws it with one.
		require.NoError(f.t, f.process.Signal(syscall.SIGSTOP))
		f.frozen()
		require.NoError(f.t, f.process.Signal(syscall.SIGCONT))
	}
	f.events <- event
	var response events.APIGatewayV2HTTPResponse
	select {
	case body := <-f.answer:
		require.NoError(f.t, json.Unmarshal(body, &response), "%s", body)
	case <-f.exited:
		f.t.Fatalf("the function ended:\n%s", f.log)
	case <-time.After(patience):
		f.t.Fatalf("the function does not answer:\n%s", f.log)
	}
	return response
}

// requireKept checks how many deliveries the functions' inboxes got. What a process
// logs comes a moment after its answer.
func requireKept(t *testing.T, want int, functions ...*function) {
	t.Helper()
	kept := func() (n int) {
		for _, f := range functions {
			n += strings.Count(f.log.String(), "a delivery came")
		}
		return n
	}
	require.Eventually(t, func() bool { return kept() >= want }, patience, time.Millisecond)
	require.Equal(t, want, kept())
}

func (f *function) await(what chan struct{}) {
	f.t.Helper()
	select {
	case <-what:
	case <-f.exited:
		f.t.Fatalf("the function ended:\n%s", f.log)
	case <-time.After(patience):
		f.t.Fatalf("the function does not ask for an event:\n%s", f.log)
	}
}
