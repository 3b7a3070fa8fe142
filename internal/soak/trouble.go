package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/sallyport/sallyport/internal/upstashtest"
)

// trouble is one way in which the shared store is away: begin, and end.
type trouble struct {
	name       string
	begin, end func(*redis, *upstashtest.Server) error
}

var troubles = []trouble{
	{"redis stopped", func(r *redis, _ *upstashtest.Server) error { r.signal(syscall.SIGSTOP); return nil },
		func(r *redis, _ *upstashtest.Server) error { r.signal(syscall.SIGCONT); return nil }},
	{"redis killed", func(r *redis, _ *upstashtest.Server) error { r.kill(); return nil },
		func(r *redis, _ *upstashtest.Server) error { return r.start() }},
	{"answers lost", func(_ *redis, s *upstashtest.Server) error { s.CutAfterApply(1 << 30); return nil },
		func(_ *redis, s *upstashtest.Server) error { s.CutAfterApply(0); return nil }},
	{"answers late", func(_ *redis, s *upstashtest.Server) error { s.SetDelay(400 * time.Millisecond); return nil },
		func(_ *redis, s *upstashtest.Server) error { s.SetDelay(0); return nil }},
	{"writes refused", func(_ *redis, s *upstashtest.Server) error { s.SetSlotError("*", "READONLY x"); return nil },
		func(_ *redis, s *upstashtest.Server) error { s.SetSlotError("*", ""); return nil }},
}

// stretch is a time without trouble.
type stretch struct{ from, to time.Time }

// makeTrouble has the shared store go and come back until ctx is done, each kind in
// its turn and for random times, and leaves it in order.
func makeTrouble(ctx context.Context, cfg config, r *redis, front *upstashtest.Server, rep *report) {
	rng := rand.New(rand.NewPCG(cfg.seed, 1))
	calm := time.Now()
	for n := 0; ; n++ {
		// Every other calm is long enough for whole windows in which nothing goes wrong.
		wait := between(rng, cfg.window/4, cfg.window)
		if n%2 == 1 {
			wait += 3 * cfg.window
		}
		if !sleep(ctx, wait) {
			break
		}
		t := troubles[n%len(troubles)]
		lasts := between(rng, cfg.window/10, 3*cfg.window/2)
		fmt.Fprintf(cfg.out, "%s: %s for %s\n", time.Since(rep.start).Round(time.Second), t.name, lasts.Round(time.Millisecond))
		rep.calmed(stretch{calm, time.Now()}, t.name)
		err := t.begin(r, front)
		sleep(ctx, lasts)
		if err == nil {
			err = t.end(r, front)
		}
		if err != nil {
			rep.fail(fmt.Sprintf("%s: %v", t.name, err))
			return
		}
		rep.count("calls to the shared store", front.Requests())
		front.Forget()
		calm = time.Now()
	}
	rep.calmed(stretch{calm, time.Now()}, "")
	rep.count("calls to the shared store", front.Requests())
}

func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)))
}

// sleep tells whether ctx let it sleep for so long.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
