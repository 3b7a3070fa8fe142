//go:build unix

package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// line is what lies between a function and its store: connections pass through it, and
// it can end them in the two ways in which they end while nobody looks.
type line struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	ends  map[net.Conn]net.Conn // the function's end to the store's
	opens int
}

// newLine returns a line to the server at target, a URL, and the URL by which it is
// used.
func newLine(t *testing.T, target string) (l *line, throughURL string) {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	l = &line{target: u.Host, ends: make(map[net.Conn]net.Conn)}
	l.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = l.listener.Close()
		l.cut()
	})
	go l.accept()
	u.Host = l.listener.Addr().String()
	return l, u.String()
}

func (l *line) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // the test is over
		}
		far, err := net.Dial("tcp", l.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		l.mu.Lock()
		l.ends[near] = far
		l.opens++
		l.mu.Unlock()
		go l.forward(far, near)
		go func() {
			// What the store sends after a drop is lost, and so is its FIN.
			_, _ = io.Copy(near, far)
			if l.forget(near) {
				_ = near.Close()
			}
		}()
	}
}

// forward passes on what the function sends, until one of the two ends hangs up; of a
// connection that was dropped it swallows all.
func (l *line) forward(far, near net.Conn) {
	_, _ = io.Copy(far, near)
	_ = far.Close()
	_, _ = io.Copy(io.Discard, near)
}

// forget tells whether the connection was still alive.
func (l *line) forget(near net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, alive := l.ends[near]
	delete(l.ends, near)
	return alive
}

// cut closes all connections, as a peer does with idle ones.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for near, far := range l.ends {
		_, _ = near.Close(), far.Close()
	}
	clear(l.ends)
}

// drop forgets all connections without a word to the function, as a gateway does: what
// it sends on them goes nowhere, and nothing comes back.
func (l *line) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for near, far := range l.ends {
		delete(l.ends, near)
		_ = far.Close()
	}
}

// opened returns how many connections there were.
func (l *line) opened() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opens
}
