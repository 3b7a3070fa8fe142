package main

import (
	"log/slog"
	"sync"
	"time"
)

// trouble says that the service does not answer, at most once a minute: a flood of
// requests must not become a flood of lines.
type trouble struct {
	logger *slog.Logger

	mu    sync.Mutex
	said  time.Time
	times int // since then
}

func (t *trouble) note(status int) {
	t.mu.Lock()
	t.times++
	now := time.Now()
	if !t.said.IsZero() && now.Sub(t.said) < time.Minute {
		t.mu.Unlock()
		return
	}
	times := t.times
	t.said, t.times = now, 0
	t.mu.Unlock()
	// Not why: the error may quote the request.
	t.logger.Error("proxy: the service does not answer", "status", status, "times", times)
}
