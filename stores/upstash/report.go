package upstash

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport/sallyport/internal/fault"
)

// quiet is how long a report of one kind is followed by no other.
const quiet = time.Minute

// reports tells the operator of faults that cost no decision. It speaks when a state
// changes, not for each hit, and never of a key.
type reports struct {
	log     *slog.Logger
	failing atomic.Bool // it was reported that expiries can't be set

	mu      sync.Mutex
	failure spaced // reports of expiries that can't be set
	falls   spaced // reports of counts that went backwards
	refused spaced // reports of scripts that are not run
}

func (r *reports) init(log *slog.Logger) {
	if r.log = log; log == nil {
		r.log = slog.Default()
	}
}

// spaced keeps reports of one kind apart and counts those it holds back.
type spaced struct {
	next   int64
	missed uint64
}

// due tells whether to report now, and how much happened since the last time.
func (s *spaced) due(now int64) (times uint64, yes bool) {
	s.missed++
	if now < s.next {
		return 0, false
	}
	times, s.missed, s.next = s.missed, 0, now+int64(quiet)
	return times, true
}

// expiryFailed: a hit was counted, and PEXPIRE answered this.
func (r *reports) expiryFailed(nx slot, now int64) {
	r.mu.Lock()
	times, yes := r.failure.due(now)
	r.mu.Unlock()
	if !yes {
		return
	}
	r.failing.Store(true)
	cause := "an answer that makes no sense, or none"
	if nx.kind == isError {
		cause = read(nx.text).text
	}
	r.log.Warn("upstash: hits are counted but their keys get no expiry; each next hit tries again", "cause", cause, "times", times)
}

// expirySet ends what expiryFailed began.
func (r *reports) expirySet() {
	if r.failing.Load() && r.failing.CompareAndSwap(true, false) {
		r.log.Info("upstash: keys get their expiry again")
	}
}

func (r *reports) plain() {
	r.log.Warn("upstash: the server does not know PEXPIRE with NX; the hit that opens a window takes a second exchange")
}

func (r *reports) stock() {
	r.log.Warn("upstash: the server does not know Upstash's flags of scripts, so they go without; on Upstash itself each would lock the whole database")
}

// script: a script was answered by err. That the server or the token lets none run
// shows in no other way, since hits of cost 1 go on being counted.
func (r *reports) script(err error, now int64) {
	var f *fault.Error
	if !errors.As(err, &f) || !f.KeyOnly || !f.Lasting {
		return
	}
	r.mu.Lock()
	times, yes := r.refused.due(now)
	r.mu.Unlock()
	if yes {
		r.log.Warn("upstash: the script is not run: but for hits of cost 1 in fixed windows without a block nothing is counted here", "cause", f.Text, "times", times)
	}
}

// fell: a window was over before its time, and it was no refund.
func (r *reports) fell(now int64) {
	r.mu.Lock()
	times, yes := r.falls.due(now)
	r.mu.Unlock()
	if yes {
		r.log.Warn("upstash: a counter went backwards within its window: it was reset elsewhere, or the database forgot it (is eviction on?)", "times", times)
	}
}
