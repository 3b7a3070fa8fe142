package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// report is what was seen.
type report struct {
	config
	start time.Time

	mu       sync.Mutex
	statuses map[int]int
	counts   map[string]int
	troubles map[string]int
	admitted map[string][]time.Time // by hammered key
	calm     []stretch
	waits    []time.Duration // of honest visitors
	refused  int             // of them
	faults   []string        // bars that were missed on the way
	before   []usage
	most     usage
	after    []usage
	logs     []ending
}

func newReport(cfg config) *report {
	return &report{config: cfg, start: time.Now(), statuses: map[int]int{}, counts: map[string]int{}, troubles: map[string]int{}, admitted: map[string][]time.Time{}}
}

func (r *report) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *report) status(code int) { r.locked(func() { r.statuses[code]++ }) }

func (r *report) count(what string, n int) { r.locked(func() { r.counts[what] += n }) }

func (r *report) admit(key string) {
	r.locked(func() { r.admitted[key] = append(r.admitted[key], time.Now()) })
}

func (r *report) calmed(s stretch, then string) {
	r.locked(func() {
		r.calm = append(r.calm, s)
		if then != "" {
			r.troubles[then]++
		}
	})
}

func (r *report) visited(status int, wait time.Duration) {
	r.locked(func() {
		r.waits = append(r.waits, wait)
		if !taken(status) {
			r.refused++
		}
	})
}

// fail notes a missed bar, the same one once.
func (r *report) fail(what string) {
	r.locked(func() {
		if !slices.Contains(r.faults, what) {
			r.faults = append(r.faults, what)
		}
	})
}

// sample looks at the programs until ctx is done.
func (r *report) sample(ctx context.Context, fleet []*program) {
	for {
		for _, p := range fleet {
			u := p.usage()
			r.locked(func() {
				r.most = usage{max(r.most.memory, u.memory), max(r.most.threads, u.threads), max(r.most.files, u.files)}
			})
		}
		if !sleep(ctx, 250*time.Millisecond) {
			return
		}
	}
}

// settle waits until the connections of the clients, who have gone, are closed, or for
// longer than it may take.
func (r *report) settle(ctx context.Context, fleet []*program) {
	for end := time.Now().Add(patience); ; {
		r.after = nil
		quiet := true
		for i, p := range fleet {
			u := p.usage()
			r.after = append(r.after, u)
			quiet = quiet && u.files <= r.before[i].files+spareFiles
		}
		if quiet || time.Now().After(end) || !sleep(ctx, 100*time.Millisecond) {
			return
		}
	}
}

func (r *report) print(out io.Writer) {
	requests := 0
	for _, n := range r.statuses {
		requests += n
	}
	fmt.Fprintf(out, "\n%d answers in %s\n", requests, time.Since(r.start).Round(time.Second))
	for _, code := range slices.Sorted(maps.Keys(r.statuses)) {
		fmt.Fprintf(out, "  status %d: %d\n", code, r.statuses[code])
	}
	for _, what := range slices.Sorted(maps.Keys(r.counts)) {
		fmt.Fprintf(out, "  %s: %d\n", what, r.counts[what])
	}
	for _, what := range slices.Sorted(maps.Keys(r.troubles)) {
		fmt.Fprintf(out, "  trouble, %s: %d times\n", what, r.troubles[what])
	}
	given, local := r.outages()
	fmt.Fprintf(out, "  the shared store was given up %d times, and %d decisions were taken without it until it was back\n", given, local)
	fmt.Fprintf(out, "  (by their logs; those of the first failures, and remembered refusals, don't show outside)\n")
	fmt.Fprintf(out, "most for one hammered key in a window: %d of a quota of %d; in the %d calm stretches that hold whole windows: %d\n",
		r.worst(), quota, len(r.sound()), r.worstCalm())
	slices.Sort(r.waits)
	if n := len(r.waits); n > 0 {
		fmt.Fprintf(out, "honest visitors: %d requests, %d refused, waited %s (half), %s (99 of 100), %s (all)\n",
			n, r.refused, r.waits[n/2].Round(time.Microsecond), r.waits[n*99/100].Round(time.Microsecond), r.waits[n-1].Round(time.Microsecond))
	}
	for i := range r.after {
		fmt.Fprintf(out, "instance %d: resident memory %d MB before, %d MB after; open files %d before, %d after\n",
			i+1, r.before[i].memory>>20, r.after[i].memory>>20, r.before[i].files, r.after[i].files)
	}
	fmt.Fprintf(out, "at most, in one of them: %d MB, %d threads, %d open files\n", r.most.memory>>20, r.most.threads, r.most.files)
}
