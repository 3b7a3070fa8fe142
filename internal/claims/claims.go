// Package claims carries what a gateway's authorizer said of a caller, from package
// lambda, which knows the events, to package handler, which knows the keys. Neither
// need know the other's types.
package claims

import (
	"context"
	"math"
	"strconv"
)

// Lookup returns the claim of a name as the event has it, nil if there is none. It is
// safe for concurrent use.
type Lookup func(name string) any

type key struct{}

// With returns a context that carries the claims.
func With(ctx context.Context, lookup Lookup) context.Context {
	if lookup == nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, lookup)
}

// Text returns a claim as text: a string as it is, a boolean as "true" or "false", a
// whole number in decimal digits. False is what there is not: no claims, none of this
// name, null, an empty text, and what has no one text, such as a list, an object, a
// fraction, or a number of 2^53 or more, of which several are one once JSON has been
// read into a float64.
func Text(ctx context.Context, name string) (string, bool) {
	lookup, ok := ctx.Value(key{}).(Lookup)
	if !ok {
		return "", false
	}
	switch v := lookup(name).(type) {
	case string:
		return v, v != ""
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		if v != math.Trunc(v) || math.Abs(v) >= 1<<53 {
			return "", false
		}
		return strconv.FormatInt(int64(v), 10), true
	}
	return "", false
}
