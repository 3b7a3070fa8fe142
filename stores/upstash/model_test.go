package upstash_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
	"github.com/sallyport/sallyport/stores/upstash"
)

// twins are the memory store, whose meaning is plain, and two instances over one
// database, which must have the same.
type twins struct {
	t         *testing.T
	model     *memory.Store
	instances [2]*upstash.Store
	srv       *upstashtest.Server

	// refused holds the keys of which a hit of cost 1 was refused in this window: their
	// counters stand above what the model has, and a raised quota would show it.
	refused map[string]bool

	// stale is until when an instance may take a window for the one that it knew before
	// the other instance reset the key: it goes by counts that grow.
	stale   [2]map[string]time.Time
	history []string
}

const plenty = 1 << 40

func (w *twins) used(key string, limit stores.Limit) int {
	limit.Quota = plenty
	d, err := w.model.Peek(w.t.Context(), stores.Hit{Key: key, Limit: limit})
	require.NoError(w.t, err)
	return plenty - d.Remaining
}

// same compares decisions: also when the window ends, if that is certain, and else that
// nobody is told to come too early. A refusal that may straddle says 1 ms.
func (w *twins) same(want, got stores.Decision, certain, stale bool) {
	w.t.Helper()
	failed := want.Allowed != got.Allowed || want.Remaining != got.Remaining || (want.RetryAfter == 0) != (got.RetryAfter == 0)
	late := got.ResetAfter - want.ResetAfter
	switch {
	case stale:
	case certain:
		// Redis counts in whole milliseconds, and a key lives through its last one.
		failed = failed || late < 0 || late > time.Millisecond
	case got.RetryAfter != time.Millisecond:
		failed = failed || late < 0
	}
	if failed {
		w.t.Fatalf("%+v, and the model %+v\n%s", got, want, strings.Join(w.history[max(0, len(w.history)-40):], "\n"))
	}
}

// step does one thing to both.
func (w *twins) step(rng *rand.Rand, window time.Duration) {
	ctx, t := w.t.Context(), w.t
	key := fmt.Sprint("k", rng.IntN(3))
	limit := stores.FixedWindow(1+rng.IntN(12), window)
	used := w.used(key, limit)
	if used == 0 {
		d, err := w.model.Peek(ctx, stores.Hit{Key: key, Limit: limit})
		require.NoError(t, err)
		if d.ResetAfter == 0 {
			delete(w.refused, key) // the window is over
		}
	}
	if w.refused[key] {
		limit.Quota = max(1, min(limit.Quota, used))
	}
	hit := stores.Hit{Key: key, Limit: limit, Cost: rng.IntN(5)}
	at := rng.IntN(2)
	s, stale := w.instances[at], time.Now().Before(w.stale[at][key])
	note := func(what string, more ...any) {
		w.history = append(w.history, fmt.Sprintf("%s by %d on %s %s cost %d, %d used %v", what, at, key, limit, hit.Cost, used, more))
	}
	switch n := rng.IntN(20); {
	case n < 10:
		note("Take")
		want, err := w.model.Take(ctx, hit)
		require.NoError(t, err)
		got, certain, err := s.TakeCertain(ctx, hit)
		require.NoError(t, err)
		w.same(want, got, certain, stale && hit.Cost <= 1)
		if !want.Allowed && hit.Cost <= 1 {
			w.refused[key] = true
		}
	case n < 13:
		owed, until := max(1, rng.IntN(6)), 5*time.Millisecond+time.Duration(rng.Int64N(int64(window/(10*time.Millisecond))))*10*time.Millisecond
		note("TakeOwing", owed, until)
		want, err := w.model.TakeOwing(ctx, hit, owed, until)
		require.NoError(t, err)
		got, err := s.TakeOwing(ctx, hit, owed, until)
		require.NoError(t, err)
		w.same(want, got, true, false)
	case n < 17:
		note("Refund")
		require.NoError(t, w.model.Refund(ctx, hit))
		require.NoError(t, s.Refund(ctx, hit))
		if used > 0 {
			delete(w.refused, key)
		}
	case n < 18:
		note("Peek")
		want, err := w.model.Peek(ctx, hit)
		require.NoError(t, err)
		got, err := s.Peek(ctx, hit)
		require.NoError(t, err)
		require.Equal(t, want.Allowed, got.Allowed)
		require.Equal(t, want.Remaining, got.Remaining)
	case n < 19:
		note("Reset")
		require.NoError(t, w.model.Reset(ctx, hit))
		require.NoError(t, s.Reset(ctx, hit))
		delete(w.refused, key)
		w.stale[1-at][key] = time.Now().Add(window)
	default:
		note("SCRIPT FLUSH")
		_, err := w.srv.Do("SCRIPT", "FLUSH")
		require.NoError(t, err)
	}
}

// TestLikeTheModel takes random steps: hits of any cost, debts, refunds, resets, quotas
// raised and lowered, windows that end, a server that forgets its scripts.
func TestLikeTheModel(t *testing.T) {
	seeds := uint64(12)
	if upstash.RaceDetector {
		seeds = 4
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			model, err := memory.New(memory.Config{})
			require.NoError(t, err)
			srv := upstashtest.NewBubble(t)
			srv.SetStock(seed%2 == 0)
			w := &twins{t: t, model: model, srv: srv, refused: map[string]bool{}}
			for i := range w.instances {
				w.stale[i] = map[string]time.Time{}
				w.instances[i] = open(t, srv.URL, func(c *upstash.Config) { c.Transport = srv.Transport() })
			}
			// Windows end at odd times and steps are at even ones, so that none falls into
			// the last millisecond.
			window := time.Duration(10+rng.IntN(200))*10*time.Millisecond + 5*time.Millisecond
			for range 800 {
				w.step(rng, window)
				if rng.IntN(3) > 0 {
					pause := time.Duration(rng.IntN(20)) * 10 * time.Millisecond
					time.Sleep(pause)
				}
			}
		})
	}
}
