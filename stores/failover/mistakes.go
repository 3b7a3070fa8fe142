package failover

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// mistakes reports a misconfigured shared store at the first call that shows it. An
// instance may not live long enough for the breaker to open, and would count for itself
// all its life without a word.
type mistakes struct {
	told atomic.Bool  // since the last call that went well
	next atomic.Int64 // process time before which nothing more is said
}

// note takes the outcome of a call. It says one thing until a call goes well, and no
// more than one a minute, in case calls go well and badly by turns.
func (m *mistakes) note(log *slog.Logger, err error, now int64) {
	switch {
	case err == nil:
		if m.told.Load() {
			m.told.Store(false)
		}
	case errors.Is(err, stores.ErrMisconfigured) && now >= m.next.Load() && m.told.CompareAndSwap(false, true):
		m.next.Store(now + int64(time.Minute))
		log.Warn("sallyport: the shared store is misconfigured, memory decides meanwhile", slog.Any("cause", err))
	}
}
