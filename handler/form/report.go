package form

import (
	"log/slog"
	"sync/atomic"
)

// tally counts what each post may make happen and speaks the first, the tenth, the
// hundredth time, so that a flood of posts is no flood of log lines.
type tally struct {
	n    atomic.Uint64
	told atomic.Bool // and nobody has told yet that it is over
}

func (t *tally) note(logger *slog.Logger, message string, attributes ...any) {
	n := t.n.Add(1)
	rest := n
	for rest%10 == 0 {
		rest /= 10
	}
	if rest != 1 {
		return
	}
	t.told.Store(true)
	logger.Warn("sallyport: "+message, append(attributes, "times", n)...)
}

// over reports whether it is to be told that what was noted has ended: once for each
// line of note, so that what comes and goes speaks no more often than that.
func (t *tally) over() bool { return t.told.Load() && t.told.Swap(false) }
