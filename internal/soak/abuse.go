package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// hangUp sends a whole request and is gone after three milliseconds.
func (c *client) hangUp(ctx context.Context) {
	c.load()
	if conn := c.dial(); conn != nil {
		_, _ = fmt.Fprint(conn, head(c.address(11), len(c.form))+c.form)
		c.form = ""
		sleep(ctx, 3*time.Millisecond)
		_ = conn.Close()
		c.report.count("hang-ups", 1)
	}
	sleep(ctx, between(c.rng, 0, 20*time.Millisecond))
}

// drip sends a body byte by byte, for longer than the server waits, and reads what it
// is told.
func (c *client) drip(ctx context.Context) {
	conn := c.dial()
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	c.report.count("slow bodies", 1)
	if _, err := fmt.Fprint(conn, head(c.address(12), 1000)); err != nil {
		return
	}
	for range 1000 {
		if _, err := conn.Write([]byte("a")); err != nil || !sleep(ctx, 50*time.Millisecond) {
			break
		}
	}
	c.read(conn)
}

// hugeHeader sends more header than is read.
func (c *client) hugeHeader(ctx context.Context) {
	if conn := c.dial(); conn != nil {
		_, _ = fmt.Fprint(conn, strings.Replace(head(c.address(13), 0), "\r\n\r\n", "\r\nX-Huge: "+strings.Repeat("a", 64<<10)+"\r\n\r\n", 1))
		c.read(conn)
		_ = conn.Close()
		c.report.count("huge headers", 1)
	}
	sleep(ctx, between(c.rng, 50*time.Millisecond, 200*time.Millisecond))
}

func (c *client) dial() net.Conn {
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.instance().url, "http://"))
	if err != nil {
		c.report.fail("dialling: " + err.Error())
		return nil
	}
	return conn
}

// read notes the status that came, if one did.
func (c *client) read(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return
	}
	_ = resp.Body.Close()
	c.report.status(resp.StatusCode)
}

func head(from string, length int) string {
	return fmt.Sprintf("POST /contact HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nX-Forwarded-For: %s\r\nContent-Length: %d\r\n\r\n", from, length)
}
