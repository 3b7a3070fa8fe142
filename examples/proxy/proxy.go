package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/sallyport/sallyport/handler"
)

// defaultBodyTime is how long a body may take of which a policy counts a field. Others
// may take as long as the service lets them.
const defaultBodyTime = 30 * time.Second

// proxy is the whole program as a handler.
type proxy struct {
	guard    *handler.Guard
	upstream *url.URL
	direct   bool          // no proxy stands before this one
	bodyTime time.Duration // see defaultBodyTime
	reverse  httputil.ReverseProxy
	trouble  trouble
}

func newProxy(c config) (*proxy, error) {
	guard, err := handler.New(handler.Config{
		Store:    c.store,
		ClientIP: c.clientIP,
		Policies: c.policies,
		Logger:   c.logger,
	})
	if err != nil {
		return nil, fmt.Errorf("SALLYPORT_POLICIES: %w", err)
	}
	p := &proxy{
		guard:    guard,
		upstream: c.upstream,
		direct:   c.clientIP.String() == handler.Direct().String(),
		bodyTime: defaultBodyTime,
		trouble:  trouble{logger: c.logger},
	}
	p.reverse = httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		ModifyResponse: modify,
		ErrorHandler:   p.failed,
		Transport:      newTransport(),
		FlushInterval:  -1, // whatever comes is handed on at once
		// What breaks off within an answer is the client's doing as often as the service's.
		ErrorLog: slog.NewLogLogger(c.logger.Handler(), slog.LevelDebug),
	}
	return p, nil
}

func newTransport() *http.Transport {
	return &http.Transport{
		// No Proxy: the service is near, and a variable that is meant for other traffic must
		// not send its requests elsewhere.
		DialContext:         (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		// For the first byte of an answer, once the request is sent.
		ResponseHeaderTimeout: time.Minute,
		MaxIdleConnsPerHost:   64,
		// Shorter than what servers wait (Node 5 s, gunicorn 2 s): a request that meets a
		// connection about to be closed would be a 502.
		IdleConnTimeout: 1500 * time.Millisecond,
		// Else it would ask for gzip by itself, and unpack it.
		DisableCompression: true,
	}
}

type verdictKey struct{}

// ServeHTTP asks the guard, and hands on what it allows.
//
// It is no Guard.Handler because ReverseProxy clears all headers after a 1xx answer: the
// RateLimit fields go into the final one, in modify.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A policy may have the guard read the body first. Where the writer knows no deadlines
	// (in tests) nothing is slow either.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(p.bodyTime))
	r = endToEnd(r)
	v := p.guard.Check(r)
	if v.Status != 0 {
		v.Refuse(w, r)
		return
	}
	_ = control.SetReadDeadline(time.Time{})
	if r.Method == http.MethodConnect {
		// It asks for a tunnel to somewhere else.
		v.SetHeaders(w.Header())
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Opaque != "" {
		// "GET x:http://b/c" would reach the service as "GET http://b/c", which is about
		// another host and path than the guard and X-Forwarded-Host have.
		v.SetHeaders(w.Header())
		http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
		return
	}
	p.reverse.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), verdictKey{}, v)))
}

// modify adds the RateLimit fields to the service's own, if it has any.
func modify(resp *http.Response) error {
	if v, ok := resp.Request.Context().Value(verdictKey{}).(handler.Verdict); ok {
		v.SetHeaders(resp.Header)
	}
	return nil
}

// failed answers where the service did not. What was counted stays counted: whoever
// finds a request that breaks the service could else try it without a limit.
func (p *proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has gone, and nobody is to blame
	}
	status := http.StatusBadGateway
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		status = http.StatusGatewayTimeout
	}
	p.trouble.note(status)
	h := w.Header()
	if v, ok := r.Context().Value(verdictKey{}).(handler.Verdict); ok {
		v.SetHeaders(h)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// It fails only when the client has gone.
	_, _ = fmt.Fprintf(w, "{\"type\":\"about:blank\",\"title\":%q,\"status\":%d}\n", http.StatusText(status), status)
}
