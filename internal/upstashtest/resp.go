package upstashtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// The replies of Redis's protocol, version 2: int64, bulk (a byte string), status,
// failure, []any, and nil.
type (
	bulk    string
	status  string
	failure string
)

// resp is one connection to a Redis.
type resp struct {
	conn net.Conn
	rd   *bufio.Reader
}

func newResp(conn net.Conn) *resp { return &resp{conn: conn, rd: bufio.NewReader(conn)} }

// do sends all commands at once and reads as many replies.
func (r *resp) do(commands ...[]string) ([]any, error) {
	// A pipe has no buffer: unless somebody reads, the server blocks on its first
	// reply and never takes the second command.
	written := make(chan error, 1)
	go func() { written <- r.write(commands) }()
	replies := make([]any, 0, len(commands))
	for range commands {
		reply, err := r.read()
		if err != nil {
			r.conn.Close()
			<-written
			return nil, err
		}
		replies = append(replies, reply)
	}
	return replies, <-written
}

func (r *resp) write(commands [][]string) error {
	var b strings.Builder
	for _, args := range commands {
		fmt.Fprintf(&b, "*%d\r\n", len(args))
		for _, arg := range args {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
		}
	}
	_, err := io.WriteString(r.conn, b.String())
	return err
}

func (r *resp) read() (any, error) {
	line, err := r.rd.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errors.New("an empty reply")
	}
	switch rest := line[1:]; line[0] {
	case '+':
		return status(rest), nil
	case '-':
		return failure(rest), nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return nil, err
		}
		data := make([]byte, n+2)
		if _, err := io.ReadFull(r.rd, data); err != nil {
			return nil, err
		}
		return bulk(data[:n]), nil
	case '*':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return nil, err
		}
		items := make([]any, n)
		for i := range items {
			if items[i], err = r.read(); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
	return nil, fmt.Errorf("a reply that begins with %q", line[0])
}

// redis hands out connections to one Redis and keeps the idle ones.
type redis struct {
	dial  func() (net.Conn, error)
	idle  chan *resp
	asked atomic.Bool // it was dialled once, by which an embedded one starts
}

func newRedis(dial func() (net.Conn, error)) *redis {
	return &redis{dial: dial, idle: make(chan *resp, 64)}
}

func dialTCP(addr string) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.DialTimeout("tcp", addr, 5*time.Second) }
}

func (r *redis) do(commands ...[]string) ([]any, error) {
	var c *resp
	select {
	case c = <-r.idle:
	default:
		conn, err := r.dial()
		if err != nil {
			return nil, err
		}
		c = newResp(conn)
		r.asked.Store(true)
	}
	replies, err := c.do(commands...)
	if err != nil {
		c.conn.Close()
		return nil, err
	}
	select {
	case r.idle <- c:
	default:
		c.conn.Close()
	}
	return replies, nil
}

func (r *redis) close() {
	for {
		select {
		case c := <-r.idle:
			c.conn.Close()
		default:
			return
		}
	}
}
