package handler

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
)

// reports are the states that an operator should hear of. They are shared by all
// guards over one store.
type reports struct {
	short, nobody, several, consumed, unread, limit, panics, store tally
}

// tally counts how often something happened that each request may make happen, and
// speaks the first, the tenth, the hundredth time: a flood of requests is no flood
// of log lines, and still shows.
type tally struct {
	n    atomic.Uint64
	next atomic.Uint64
}

func (t *tally) note(logger *slog.Logger, message string, attributes ...any) {
	n := t.n.Add(1)
	for {
		next := t.next.Load()
		if n < max(1, next) {
			return
		}
		if t.next.CompareAndSwap(next, max(1, next)*10) {
			break
		}
	}
	logger.Warn("sallyport: "+message, append(attributes, "times", n)...)
}

// panicText says what a function panicked with. Only the runtime's own words are
// repeated: another value may hold what the request held.
func panicText(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a value of type %T", p)
}
