package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However a post is written on the wire, it counts, and at most five of them
// all bring a message; half of what is sent here is no HTTP at all.
func TestHoweverItIsWritten(t *testing.T) {
	p := start(t)
	v := newVisitor("127.0.0.10")
	goodForm := goodForm()
	n := len(goodForm)
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n, goodForm)
	post := func(line, header, body string) string {
		return line + "\r\nConnection: close\r\n" + formType + "\r\n" + header + "\r\n\r\n" + body
	}
	length := fmt.Sprintf("Host: localhost\r\nContent-Length: %d", n)
	const plain = "POST /contact HTTP/1.1"
	forms := []string{
		post(plain, length, goodForm),
		post("POST /contact HTTP/1.0", fmt.Sprintf("Content-Length: %d", n), goodForm),
		post("POST http://localhost/contact HTTP/1.1", length, goodForm),
		post("POST HTTP://elsewhere.example:1/contact HTTP/1.1", length, goodForm),
		post("POST //contact HTTP/1.1", length, goodForm),
		post("POST /./contact HTTP/1.1", length, goodForm),
		post("POST /x/../contact HTTP/1.1", length, goodForm),
		post("POST /%63ontact HTTP/1.1", length, goodForm),
		post("POST /contact/ HTTP/1.1", length, goodForm),
		post("POST /contact%2f HTTP/1.1", length, goodForm),
		post("POST /contact;x HTTP/1.1", length, goodForm),
		post("POST /Contact HTTP/1.1", length, goodForm),
		post("POST /contact?_method=GET HTTP/1.1", length, goodForm),
		post("POST contact HTTP/1.1", length, goodForm),
		post("post /contact HTTP/1.1", length, goodForm),
		post("PUT /contact HTTP/1.1", length, goodForm),
		post("GET /contact HTTP/1.1", length+"\r\nX-HTTP-Method-Override: POST", goodForm),
		post("CONNECT /contact HTTP/1.1", length, goodForm),
		post("OPTIONS /contact HTTP/1.1", length+"\r\nOrigin: http://localhost\r\nAccess-Control-Request-Method: POST", goodForm),
		post("OPTIONS * HTTP/1.1", length, goodForm),
		post(plain, "Host: localhost\r\nTransfer-Encoding: chunked", chunks),
		post(plain, length+"\r\nTransfer-Encoding: chunked", chunks),
		post(plain, length+"\r\nTransfer-Encoding: identity", goodForm),
		post(plain, length+"\r\nTransfer-Encoding: xchunked", goodForm),
		post(plain, "Host: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", chunks),
		post(plain, length+"\r\nContent-Length: 1", goodForm),
		post(plain, "Host: localhost\r\nContent-Length: -1", goodForm),
		post(plain, length+"\r\nX-Forwarded-For: 203.0.113.1,\r\n 203.0.113.2", goodForm),
		post(plain, length+"\r\nX-Forwarded-For : 203.0.113.1", goodForm),
		post(plain, length+"\r\nX-Forwarded-For: \x00", goodForm),
		post(plain, length+"\r\nX-Forwarded-For: \xff\xfe", goodForm),
		post(plain, length+"\r\nX-Forwarded-For: "+strings.Repeat("203.0.113.1, ", 64<<10/13), goodForm),
		post(plain, "Host: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: X-Forwarded-For", fmt.Sprintf("%x\r\n%s\r\n0\r\nX-Forwarded-For: 203.0.113.1\r\n\r\n", n, goodForm)),
		post(plain, length+"\r\nHost: elsewhere.example", goodForm),
		post(plain, fmt.Sprintf("Content-Length: %d", n), goodForm),
		post(plain, length+"\r\nUpgrade: h2c", goodForm),
		strings.ReplaceAll(post(plain, length, ""), "\r\n", "\n") + goodForm,
		strings.Repeat(strings.ReplaceAll(post(plain, length, goodForm), "Connection: close\r\n", ""), 8) + post(plain, length, goodForm),
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
	}
	for range 2 {
		for _, form := range forms {
			answer := v.wire(t, p, form)
			require.NotContains(t, answer, " 500 ", "%.200q", form)
		}
	}
	require.Equal(t, 429, v.post(t, p).StatusCode)
	require.Equal(t, 5, strings.Count(p.log.String(), "a message came"))
	require.Equal(t, sent, newVisitor("127.0.0.11").post(t, p).StatusCode)
}

// wire sends what it is given and returns all that comes back.
func (v *visitor) wire(t *testing.T, p *program, text string) string {
	t.Helper()
	conn, err := v.Transport.(*http.Transport).DialContext(t.Context(), "tcp", "127.0.0.1:"+p.port)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	// The server may have answered and closed before all of it was sent.
	_, _ = io.WriteString(conn, text)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	answer, _ := io.ReadAll(conn)
	return string(answer)
}
