package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"strings"
)

// newLogger writes text, and on Cloud Run JSON with the names that its log reads
// (https://cloud.google.com/logging/docs/structured-logging).
func newLogger() *slog.Logger {
	if !onCloudRun() {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(cloudHandler{slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: cloudNames}), os.Getenv("GOOGLE_CLOUD_PROJECT")})
}

func cloudNames(groups []string, a slog.Attr) slog.Attr {
	switch {
	case len(groups) > 0:
	case a.Key == slog.MessageKey:
		a.Key = "message"
	case a.Key == slog.LevelKey:
		a.Key = "severity"
		if a.Value.Any() == slog.LevelWarn {
			a.Value = slog.StringValue("WARNING")
		}
	}
	return a
}

// cloudHandler adds the trace of the request, so that the log shows a line below the
// request that it is about.
type cloudHandler struct {
	slog.Handler
	project string // empty: the platform could not tell whose trace it is
}

func (h cloudHandler) Handle(ctx context.Context, record slog.Record) error {
	if id, ok := ctx.Value(traceKey{}).(string); ok && h.project != "" {
		record.AddAttrs(slog.String("logging.googleapis.com/trace", "projects/"+h.project+"/traces/"+id))
	}
	return h.Handler.Handle(ctx, record)
}

func (h cloudHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return cloudHandler{h.Handler.WithAttrs(attrs), h.project}
}

func (h cloudHandler) WithGroup(name string) slog.Handler {
	return cloudHandler{h.Handler.WithGroup(name), h.project}
}

type traceKey struct{}

// traced puts the id of the request's trace into its context.
func traced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := traceOf(r.Header); id != "" {
			r = r.WithContext(context.WithValue(r.Context(), traceKey{}, id))
		}
		next.ServeHTTP(w, r)
	})
}

// traceOf reads traceparent (https://www.w3.org/TR/trace-context/) or Google's older
// X-Cloud-Trace-Context, "trace/span;o=1". A client can send them himself; so only what
// is an id gets into the log, and nothing but the log heeds it.
func traceOf(h http.Header) string {
	if version, rest, ok := strings.Cut(h.Get("Traceparent"), "-"); ok && len(version) == 2 {
		if id, _, ok := strings.Cut(rest, "-"); ok && isTraceID(id) {
			return id
		}
	}
	id, _, _ := strings.Cut(h.Get("X-Cloud-Trace-Context"), "/")
	if isTraceID(id) {
		return id
	}
	return ""
}

// isTraceID accepts 32 lower-case hexadecimal digits that are not all zero.
func isTraceID(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == "" && strings.Trim(s, "0") != ""
}
