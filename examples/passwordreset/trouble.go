package main

import (
	"log/slog"
	"sync"
)

// trouble says when mails begin to fail, when they fail otherwise, and when they go out
// again: a flood of requests must not become a flood of lines.
type trouble struct {
	logger *slog.Logger

	mu   sync.Mutex
	what string // "" while all is well
}

func (t *trouble) note(what string) {
	if t.change(what) {
		t.logger.Error("password reset: no mails go out", "reason", what)
	}
}

func (t *trouble) over() {
	if t.change("") {
		t.logger.Info("password reset: mails go out again")
	}
}

// change tells whether what differs from what was so far.
func (t *trouble) change(what string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := t.what != what
	t.what = what
	return changed
}
