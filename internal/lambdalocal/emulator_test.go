//go:build unix

package lambdalocal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
)

const (
	module  = "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie"
	version = "v0.0.0-20261030222936-bef5c4ba774d"
)

// patience is when a test stops waiting for what has to happen.
const patience = 60 * time.Second

// scratch is where programs are built, shared by the tests of one run.
var scratch string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if scratch, err = os.MkdirTemp("", "lambdalocal"); err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(scratch) }()
		return m.Run()
	}())
}

// emulator is the path of aws-lambda-rie.
func emulator(t *testing.T) string {
	path, err := install()
	if err != nil {
		if upstashtest.MustBeReal() {
			t.Fatal(err)
		}
		upstashtest.Missing(t, err.Error())
	}
	return path
}

var install = sync.OnceValues(func() (string, error) {
	if path, err := exec.LookPath("aws-lambda-rie"); err == nil {
		return path, nil
	}
	if !upstashtest.MustBeReal() {
		return "", errors.New("aws-lambda-rie, which make lambda-local installs,")
	}
	cmd := exec.Command("go", "install", "-ldflags", "-s -w", module+"@"+version)
	cmd.Env = append(os.Environ(), "GOBIN="+scratch, "GOFLAGS=", "GOOS=", "GOARCH=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install %s@%s: %w\n%s", module, version, err, out)
	}
	return filepath.Join(scratch, "aws-lambda-rie"), nil
})

// bootstrap builds an example with the flags that template.yaml's builds have.
func bootstrap(t *testing.T, example string) string {
	path := filepath.Join(scratch, example, "bootstrap")
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", path, "../../examples/"+example)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	info, err := os.Stat(path)
	require.NoError(t, err)
	t.Logf("examples/%s: bootstrap of %.1f MB", example, float64(info.Size())/1e6)
	return path
}

// watch runs the emulator as long as somebody holds the other end of its standard
// input, so that it ends with the test process however that ends. It is asked to, because
// it has a child of its own to end.
const watch = `"$@" & p=$!; cat >/dev/null; kill $p; wait $p`

// function is a function behind the emulator.
type function struct {
	t   *testing.T
	url string
	log *logged
}

// start runs an example until the test ends. Its environment holds only env and what
// the emulator adds.
func start(t *testing.T, example string, env ...string) *function {
	rie := emulator(t)
	program := bootstrap(t, example)
	front, runtime := freeAddr(t), freeAddr(t)
	cmd := exec.Command("sh", "-c", watch, "sh", rie, "--runtime-interface-emulator-address", front, "--runtime-api-address", runtime, program)
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "AWS_LAMBDA_FUNCTION_TIMEOUT=10")
	cmd.Dir = t.TempDir()
	f := &function{t: t, url: "http://" + front + "/2015-03-31/functions/function/invocations", log: new(logged)}
	cmd.Stdout, cmd.Stderr = f.log, f.log
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // the test ends it
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		<-exited
		if t.Failed() {
			t.Logf("log of the emulator and the function:\n%s", f.log)
		}
	})
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", front, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, patience, 10*time.Millisecond, "the emulator does not listen")
	return f
}

// invoke returns what the function answers to an event.
func (f *function) invoke(event []byte) []byte {
	f.t.Helper()
	client := http.Client{Timeout: patience}
	resp, err := client.Post(f.url, "application/json", bytes.NewReader(event))
	require.NoError(f.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(f.t, err)
	require.Equal(f.t, http.StatusOK, resp.StatusCode, "%s", body)
	require.False(f.t, bytes.Contains(body, []byte("errorType")), "%s", body)
	return body
}

func freeAddr(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// logged is what programs log.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
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
