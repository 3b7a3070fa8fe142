package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// redis is a redis-server that can be stopped, and killed and started again on the
// same port. It writes each command to disk before it answers, so that it forgets nothing that
// it has answered.
type redis struct {
	path, addr, dir string

	mu  sync.Mutex
	cmd *exec.Cmd
}

func startRedis(dir string) (*redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &redis{path: path, addr: ln.Addr().String(), dir: dir}
	if err := ln.Close(); err != nil {
		return nil, err
	}
	return r, r.start()
}

func (r *redis) start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, port, _ := net.SplitHostPort(r.addr)
	cmd := exec.Command(r.path, "--bind", "127.0.0.1", "--port", port, "--save", "",
		"--appendonly", "yes", "--appendfsync", "always", "--dir", r.dir)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			r.cmd = cmd
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return nil
		}
	}
	return fmt.Errorf("redis-server ended before it was ready: %v", cmd.Wait())
}

// signal sends SIGSTOP or SIGCONT.
func (r *redis) signal(s syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil {
		_ = r.cmd.Process.Signal(s) // it is there until kill waited for it
	}
}

func (r *redis) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cmd != nil {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait() // the status is that of the kill
		r.cmd = nil
	}
}
