package handler

import "context"

type fieldKey string

// fieldValue is what a key read of a body.
type fieldValue struct{ field, value string }

// fieldContext carries what keys read in one allocation.
type fieldContext struct {
	context.Context
	values []fieldValue
}

// Value implements context.Context.
func (c *fieldContext) Value(key any) any {
	if field, ok := key.(fieldKey); ok {
		for i := range c.values {
			if c.values[i].field == string(field) {
				return c.values[i].value
			}
		}
	}
	return c.Context.Value(key)
}

// KeyValue returns the value that [ByForm] or [ByJSON] read of the request, by the
// field or the path that the key was made with: as it was sent, also where it was
// counted as an e-mail or was blank. A handler that uses it and no parser of its own
// acts on the very value that was counted. False if no key read one: the field was not
// there, a policy before it refused or all that read it were skipped, or the request
// is exempt. The context is that of the request which [Guard.Handler] hands to its
// handler; of nested guards the innermost that read the field answers.
func KeyValue(ctx context.Context, field string) (string, bool) {
	value, ok := ctx.Value(fieldKey(field)).(string)
	return value, ok
}

// noteValue keeps a value for KeyValue. A field is read alike by all keys.
func (q *inquiry) noteValue(field, value string) {
	for i := range q.values {
		if q.values[i].field == field {
			return
		}
	}
	q.values = append(q.values, fieldValue{field, value})
}

// context returns ctx with the values that keys read. The inquiry serves others
// later, so they are copied.
func (q *inquiry) context(ctx context.Context) context.Context {
	if len(q.values) == 0 {
		return ctx
	}
	return &fieldContext{ctx, append([]fieldValue(nil), q.values...)}
}
