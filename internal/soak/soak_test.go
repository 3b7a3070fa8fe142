package main

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
)

// A short soak, so that the long one works when somebody wants it.
func TestSmoke(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		upstashtest.Missing(t, "redis-server")
	}
	var out bytes.Buffer
	r, err := run(t.Context(), config{length: 14 * time.Second, window: 6 * time.Second, seed: rand.Uint64(), out: &out})
	require.NoError(t, err)
	r.print(&out)
	t.Log(out.String())
	require.Empty(t, r.missed())
	require.Greater(t, r.worst(), quota/2, "the limit was met; a burst may lie on both sides of a window's begin")
}

// Each bar can be missed.
func TestBars(t *testing.T) {
	start := time.Now()
	times := func(n int, at time.Duration) (all []time.Time) {
		for range n {
			all = append(all, start.Add(at))
		}
		return all
	}
	sound := func() *report {
		r := newReport(config{window: 10 * time.Second})
		r.statuses = map[int]int{200: 1, 429: 1}
		r.waits = []time.Duration{time.Millisecond}
		r.admitted["a"] = times(quota, 0)
		r.calm = []stretch{{start.Add(-time.Second), start.Add(20 * time.Second)}, {start.Add(40 * time.Second), start.Add(80 * time.Second)}}
		r.before, r.after = make([]usage, 2), make([]usage, 2)
		r.logs = []ending{{}, {}}
		return r
	}
	require.Empty(t, sound().missed())
	for name, harm := range map[string]func(r *report){
		"a fault":               func(r *report) { r.fail("x") },
		"500":                   func(r *report) { r.statuses[500] = 1 },
		"nothing passed":        func(r *report) { r.statuses[200] = 0 },
		"nothing refused":       func(r *report) { r.statuses[429] = 0 },
		"visitor refused":       func(r *report) { r.visited(429, 0) },
		"visitor waits":         func(r *report) { r.visited(200, time.Minute) },
		"too many in trouble":   func(r *report) { r.admitted["b"] = times(quota+instances*share+1, 30*time.Second) },
		"too many in the calm":  func(r *report) { r.admitted["b"] = times(quota+1, 5*time.Second) },
		"too many in next calm": func(r *report) { r.admitted["b"] = times(quota+1, 75*time.Second) },
		"memory":                func(r *report) { r.most.memory = 1 << 30 },
		"files":                 func(r *report) { r.after[1].files = 100 },
		"a panic":               func(r *report) { r.logs[0].log = "panic: x" },
		"an address in a log":   func(r *report) { r.logs[0].log = "203.0.113.7" },
		"a log that is flooded": func(r *report) { r.logs[0].log = string(bytes.Repeat([]byte("x\n"), 1000)) },
		"an unclean end":        func(r *report) { r.logs[1].err = exec.ErrNotFound },
	} {
		r := sound()
		harm(r)
		require.Len(t, r.missed(), 1, name)
	}
	r := sound()
	r.admitted["b"] = times(quota+instances*share, 41*time.Second)
	require.Empty(t, r.missed(), "the window after trouble is none of the calm ones")
}
