package dynamotest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// realEnv makes missing engines a failure.
const realEnv = "SALLYPORT_TEST_REAL"

// Dynalite starts a dynalite of its own for the test, with an empty Table, and
// returns a client of it. It is an engine that nobody here wrote, stricter than the
// one in the process: reserved words, unused values, exact decimals, key lengths.
//
// It needs node and an `npm ci` in the folder dynalite beside this file. Without
// them the test is skipped, or fails where the environment says
// SALLYPORT_TEST_REAL=1.
func Dynalite(t testing.TB) *dynamodb.Client {
	t.Helper()
	dir, err := dynaliteDir()
	if err == nil {
		_, err = exec.LookPath("node")
	}
	if err != nil {
		if os.Getenv(realEnv) == "1" {
			t.Fatalf("dynamotest: %s=1, but %v", realEnv, err)
		}
		t.Skipf("dynamotest: %v", err)
	}
	port, err := startDynalite(t, dir)
	if err != nil {
		t.Fatalf("dynamotest: %v", err)
	}
	client := NewClient(fmt.Sprintf("http://127.0.0.1:%d", port), nil)
	if err := createTable(t.Context(), client); err != nil {
		t.Fatalf("dynamotest: %v", err)
	}
	return client
}

// dynaliteDir looks for the folder upwards from the working directory, which in a
// test is the package's, so that -trimpath does no harm.
func dynaliteDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		candidate := filepath.Join(dir, "internal", "dynamotest", "dynalite")
		if _, err := os.Stat(filepath.Join(candidate, "server.js")); err == nil {
			if _, err := os.Stat(filepath.Join(candidate, "node_modules", "dynalite")); err != nil {
				return "", errors.New("internal/dynamotest/dynalite has no node_modules: run npm ci there")
			}
			return candidate, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("internal/dynamotest/dynalite is not above the working directory")
		}
		dir = parent
	}
}

// startDynalite runs server.js until the test ends and returns the port that it
// prints. The process ends with its standard input: also when the test binary dies.
func startDynalite(t testing.TB, dir string) (int, error) {
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "node", "server.js")
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		stop()
		return 0, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		stop()
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		stop()
		return 0, err
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		stop()         // kills this process and no other
		_ = cmd.Wait() // its error is that we ended it
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = cmd.Wait() // so that stderr is complete
		return 0, fmt.Errorf("dynalite printed no port: %w: %s", err, stderr.String())
	}
	return strconv.Atoi(strings.TrimSpace(line))
}
