package handler

import "context"

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
