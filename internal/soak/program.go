package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// program is one running instance of the form.
type program struct {
	url    string
	cmd    *exec.Cmd
	log    *logged
	exited chan struct{}
}

// patience is how long a program may take to start or to end.
const patience = 30 * time.Second

func startProgram(path, dir string, env ...string) (*program, error) {
	p := &program{cmd: exec.Command(path), log: &logged{address: make(chan string, 1)}, exited: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = append(env, "PORT=0"), dir, p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // what came of it is in ProcessState
	}()
	select {
	case address := <-p.log.address:
		p.url = "http://" + address
		return p, nil
	case <-p.exited:
	case <-time.After(patience):
		p.kill()
	}
	return nil, fmt.Errorf("the form does not listen:\n%s", p.log)
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.exited
}

// ending is what a program left behind.
type ending struct {
	log string
	err error // nil: it ended by itself, with status 0, when it was asked to
}

func (p *program) end() ending {
	select {
	case <-p.exited:
		return ending{p.log.String(), errors.New("it had ended before it was asked to")}
	default:
	}
	err := p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		if err == nil && !p.cmd.ProcessState.Success() {
			err = errors.New(p.cmd.ProcessState.String())
		}
	case <-time.After(patience):
		p.kill()
		err = errors.New("it did not end")
	}
	return ending{p.log.String(), err}
}

// usage is what a process has in use, as far as it shows outside. All is zero where
// there is no /proc.
type usage struct{ memory, threads, files int }

func (p *program) usage() (u usage) {
	proc := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	status, _ := os.ReadFile(proc + "status")
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "VmRSS":
			u.memory = n << 10
		case "Threads":
			u.threads = n
		}
	}
	files, _ := os.ReadDir(proc + "fd")
	u.files = len(files)
	return u
}

// logged is what a program logs. The address of its listener goes to address.
type logged struct {
	mu      sync.Mutex
	text    bytes.Buffer
	found   bool
	address chan string
}

var listening = regexp.MustCompile(`contact form: listening.* address=([^ ]+).*\n`)

// Write implements io.Writer.
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if !l.found {
		if m := listening.FindSubmatch(l.text.Bytes()); m != nil {
			l.found = true
			l.address <- string(m[1])
		}
	}
	return len(p), nil
}

// String returns the log so far.
func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
