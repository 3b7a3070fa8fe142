package upstashtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// MustBeReal tells whether tests with real servers fail, rather than skip, where the
// server is missing: environment SALLYPORT_TEST_REAL=1.
func MustBeReal() bool { return os.Getenv("SALLYPORT_TEST_REAL") == "1" }

// Missing skips the test, or fails it if [MustBeReal].
func Missing(t testing.TB, what string) {
	t.Helper()
	if MustBeReal() {
		t.Fatalf("%s is missing, and SALLYPORT_TEST_REAL=1 asks for it", what)
	}
	t.Skipf("%s is missing", what)
}

// watch runs a server as long as somebody holds the other end of its standard input,
// so that it ends with the test process however that ends, and leaves no zombie.
const watch = `"$@" & p=$!; cat >/dev/null; kill -9 $p; wait $p`

// RealRedis starts a redis-server on a free loopback port and returns its address. It
// keeps nothing on disk and is ended with the test. Where there is no redis-server on
// the PATH the test is skipped: see [Missing].
func RealRedis(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		Missing(t, "redis-server")
	}
	for range 5 {
		addr, err := startRedis(t, path)
		if err == nil {
			return addr
		}
		t.Log(err) // the port was taken between our look and redis-server's
	}
	t.Fatal("redis-server does not start")
	return ""
}

func startRedis(t testing.TB, path string) (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr := ln.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = ln.Close()

	cmd := exec.Command("sh", "-c", watch, "sh", path, "--bind", "127.0.0.1", "--port", port,
		"--save", "", "--appendonly", "no", "--dir", t.TempDir())
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			rest := make(chan struct{})
			go func() { _, _ = io.Copy(io.Discard, stdout); close(rest) }()
			t.Cleanup(func() {
				_ = stdin.Close()
				<-rest
				_ = cmd.Wait() // the shell ends with the status of kill
			})
			return addr, nil
		}
	}
	_ = stdin.Close()
	return "", fmt.Errorf("redis-server ended before it was ready: %v", cmd.Wait())
}
