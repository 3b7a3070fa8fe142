package handler

import (
	"context"
	"net/http"
)

type verdictKey struct{}

// verdictContext carries a Verdict in one allocation.
type verdictContext struct {
	context.Context
	verdict Verdict
}

func withVerdict(ctx context.Context, v Verdict) context.Context {
	return &verdictContext{ctx, v}
}

// Value implements context.Context.
func (c *verdictContext) Value(key any) any {
	if _, ok := key.(verdictKey); ok {
		return &c.verdict
	}
	return c.Context.Value(key)
}

// serveIn runs next with ctx as the request's context. The server deletes the files
// of a multipart form, but only knows the request that it made: next's is a copy.
func serveIn(ctx context.Context, next http.Handler, w http.ResponseWriter, r *http.Request) {
	inner := r.WithContext(ctx)
	defer func() { r.MultipartForm = inner.MultipartForm }()
	next.ServeHTTP(w, inner)
}

// FromContext returns the Verdict of the innermost guard around the running handler
// that has a policy in [Signal] mode or Config.Verdicts set; else the zero Verdict,
// which is not allowed, and false. The context is that of the request which
// [Guard.Handler] hands to its handler.
func FromContext(ctx context.Context) (Verdict, bool) {
	v, ok := ctx.Value(verdictKey{}).(*Verdict)
	if !ok {
		return Verdict{}, false
	}
	return *v, true
}
