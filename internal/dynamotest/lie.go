package dynamotest

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Alter carries the request out and lets f change the reply.
func Alter(f func(*Reply)) Manner {
	return func(_ context.Context, apply func() Reply) (Reply, error) {
		reply := apply()
		f(&reply)
		return reply, nil
	}
}

// StallBody sends the head and half of the body, and nothing more.
func StallBody() Manner { return Alter(func(r *Reply) { r.Stall = true }) }

// CutBody sends the head and half of the body, then cuts.
func CutBody() Manner { return Alter(func(r *Reply) { r.Cut = true }) }

// Date sets the Date header off the true time by d.
func Date(d time.Duration) Manner {
	return Alter(func(r *Reply) { r.Header.Set("Date", time.Now().Add(d).UTC().Format(http.TimeFormat)) })
}

// NoDate sends an empty Date header, which no parser takes.
func NoDate() Manner { return Alter(func(r *Reply) { r.Header.Set("Date", "") }) }

// Lie lets f change the attributes of the item that the reply shows, in its wire
// form: {"n": {"N": "5"}}. attributes is empty where the reply shows no item.
func Lie(f func(attributes map[string]any)) Manner {
	return Alter(func(r *Reply) {
		var body map[string]any
		if json.Unmarshal(r.Body, &body) != nil {
			return
		}
		for _, name := range []string{"Attributes", "Item"} {
			if item, ok := body[name].(map[string]any); ok {
				f(item)
			}
		}
		if changed, err := json.Marshal(body); err == nil {
			r.Body = changed
		}
	})
}
