package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// The policies that the marks are, and so a part of their keys in stores.
const (
	busyMark = "webhook-busy"
	doneMark = "webhook-done"
)

const (
	// busyTime is how long a busy mark lasts if nobody takes it back. It is the same for
	// every delivery, because a mark of another length would be another mark.
	busyTime = handleTime + 5*time.Second

	// knownTime is how long an instance answers for a delivery that is done without asking
	// the store, so that a storm of replays costs nobody a call.
	knownTime = 5 * time.Minute
)

// marks keep one delivery from being handled twice. A mark is a counter with a quota of
// one: whoever takes it has it, and the store sees to it that it is one only.
type marks struct {
	guard *handler.Guard
	scope string
	known *memory.Store // what is done, as far as this instance knows
	lost  tally         // done marks that could not be written
}

func newMarks(guard *handler.Guard, scheme Scheme, replay time.Duration) (*marks, error) {
	m := &marks{}
	// This instance's memory is no mark for the others, so an outage decides nothing.
	mark := func(name string, d time.Duration) handler.Policy {
		return handler.Policy{Name: name, Limit: stores.Cooldown(d), Key: handler.Manual(), Outage: stores.OutageRefuse}
	}
	var err error
	if m.guard, err = guard.With(mark(busyMark, busyTime), mark(doneMark, replay)); err != nil {
		return nil, fmt.Errorf("webhook: Marks: %w", err)
	}
	if m.known, err = memory.New(memory.Config{}); err != nil {
		return nil, fmt.Errorf("webhook: Marks: %w", err)
	}
	if own, ok := scheme.(interface{ scope() string }); ok {
		m.scope = own.scope()
	}
	return m, nil
}

// name is what the marks of an id are kept under: short and printable, whatever the id.
func (m *marks) name(id string) string {
	sum := sha256.Sum256([]byte(m.scope + "\x00" + id))
	return hex.EncodeToString(sum[:])
}

// claim is what became of a claim to a delivery.
type claim uint8

const (
	claimed claim = iota // the busy mark is ours, and nobody handled it before
	busy                 // somebody else's
	done
	undecided // the marks can't be had; the busy mark may be ours
)

// claim takes the busy mark and then looks for the done mark. In the other order somebody
// could take his busy mark back, having written done, between our two steps. wait is when
// to try again. held tells that the busy mark is certainly ours.
func (m *marks) claim(ctx context.Context, name string) (c claim, wait time.Duration, held bool) {
	if m.isKnown(ctx, name) {
		return done, 0, false
	}
	mark, err := twice(func() (stores.Decision, error) { return m.guard.Take(ctx, busyMark, 1, name) })
	if err != nil {
		return undecided, mark.RetryAfter, false
	}
	held = mark.Allowed
	was, err := twice(func() (stores.Decision, error) { return m.guard.Peek(ctx, doneMark, name) })
	switch {
	case err != nil:
		return undecided, was.RetryAfter, held
	case !was.Allowed:
		m.learn(ctx, name)
		return done, 0, held
	case !held:
		return busy, mark.RetryAfter, false
	}
	return claimed, 0, true
}

// finish writes the done mark. The busy mark is left to its end: it costs nothing, and
// for a while it makes up for a done mark that could not be written.
func (m *marks) finish(ctx context.Context, name string) {
	m.learn(ctx, name)
	// A refusal says that the mark is there, so the second try is none too many.
	if _, err := twice(func() (stores.Decision, error) { return m.guard.Take(ctx, doneMark, 1, name) }); err != nil {
		m.lost.note(slog.Default(), "a delivery was handled, but that could not be marked in the store; a replay to another instance would be handled again", "error", err)
	}
}

// release takes the busy mark back. If that fails it ends by itself.
func (m *marks) release(ctx context.Context, name string) {
	_ = m.guard.Reset(ctx, busyMark, name)
}

// known is a mark in memory, which lets nobody in: it is only ever looked at.
func (m *marks) knownHit(name string) stores.Hit {
	return stores.Hit{Key: name, Limit: stores.Cooldown(knownTime)}
}

func (m *marks) isKnown(ctx context.Context, name string) bool {
	d, err := m.known.Peek(ctx, m.knownHit(name))
	return err == nil && !d.Allowed
}

func (m *marks) learn(ctx context.Context, name string) {
	// Memory fails only for a context that is over, and then the store is asked next time.
	_, _ = m.known.Take(ctx, m.knownHit(name))
}

// twice asks for a mark again if the store was not to be had, which after a frozen
// instance's first request on a dead connection it often is the next moment. A hit may not
// be sent twice, but a mark may: if the first attempt took it unheard, the second finds it
// taken, which is a refusal and never a pass.
//
// What the memory of this instance says in the store's place is an error here.
func twice(ask func() (stores.Decision, error)) (d stores.Decision, err error) {
	for range 2 {
		if d, err = ask(); err == nil {
			err = d.Fault
		}
		if !errors.Is(err, stores.ErrUnavailable) {
			break
		}
	}
	return d, err
}
