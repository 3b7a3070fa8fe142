package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport/sallyport/internal/sim"
	"github.com/sallyport/sallyport/internal/upstashtest"
)

const (
	// late is by how much an admission may be seen after it was counted: the longest
	// call to the shared store, and what a busy machine takes to tell of it.
	late = 2500 * time.Millisecond
	// healed is how long after trouble an instance may still go without the shared store: the
	// breaker's longest time, and the probe.
	healed = 5*time.Second + late

	mostMemory = 256 << 20
	spareFiles = 16
	// longestWait is far above what the kit takes (2 s), for machines that are busy.
	longestWait = 15 * time.Second
)

// missed returns the bars that were missed.
func (r *report) missed() []string {
	missed := append([]string(nil), r.faults...)
	miss := func(format string, args ...any) { missed = append(missed, fmt.Sprintf(format, args...)) }
	for code, n := range r.statuses {
		if code >= 500 {
			miss("%d answers with status %d", n, code)
		}
	}
	if r.statuses[200]+r.statuses[303] == 0 || r.statuses[429] == 0 || len(r.waits) == 0 {
		miss("nothing was let through, or nothing was refused")
	}
	if r.refused > 0 {
		miss("%d of %d requests of honest visitors were not served", r.refused, len(r.waits))
	}
	for _, wait := range r.waits {
		if wait > longestWait {
			miss("an honest visitor waited %s", wait)
		}
	}
	if worst := r.worst(); worst > quota+instances*share {
		miss("%d for one key in a window: want at most the quota and %d shares of %d", worst, instances, share)
	}
	if worst := r.worstCalm(); worst > quota {
		miss("%d for one key in a calm window: want at most %d", worst, quota)
	}
	if r.most.memory > mostMemory {
		miss("%d MB resident: want at most %d", r.most.memory>>20, mostMemory>>20)
	}
	for i, u := range r.after {
		if u.files > r.before[i].files+spareFiles {
			miss("instance %d has %d files open when all have gone, %d before they came", i+1, u.files, r.before[i].files)
		}
	}
	for i, e := range r.logs {
		if e.err != nil {
			miss("instance %d: %v", i+1, e.err)
		}
		for _, never := range []string{"panic", "DATA RACE", "203.0.113.", upstashtest.DefaultToken} {
			if strings.Contains(e.log, never) {
				miss("the log of instance %d holds %q", i+1, never)
			}
		}
		// The form logs each message that it takes; nothing else may depend on the traffic.
		if lines, most := strings.Count(e.log, "\n")-strings.Count(e.log, "a message came"), 20+8*sum(r.troubles); lines > most {
			miss("instance %d wrote %d lines into its log: want at most %d", i+1, lines, most)
		}
	}
	return missed
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// worst is the most that one hammered key got in a window.
func (r *report) worst() (most int) {
	for _, admitted := range r.admitted {
		most = max(most, sim.Least(admitted, r.window-late))
	}
	return most
}

// sound are the calm stretches without what trouble leaves behind: an instance that has
// not found the store again, and the window in which it granted its share.
func (r *report) sound() (sound []stretch) {
	for i, s := range r.calm {
		if i > 0 {
			s.from = s.from.Add(healed + r.window)
		}
		if s.to.Sub(s.from) >= r.window {
			sound = append(sound, s)
		}
	}
	return sound
}

func (r *report) worstCalm() (most int) {
	for _, s := range r.sound() {
		for _, admitted := range r.admitted {
			var within []time.Time
			for _, at := range admitted {
				if at.After(s.from) && at.Before(s.to) {
					within = append(within, at)
				}
			}
			most = max(most, sim.Least(within, r.window-late))
		}
	}
	return most
}

var back = regexp.MustCompile(`the shared store is back.* decided_locally=(\d+)`)

// outages are what the programs' logs tell of them.
func (r *report) outages() (given, local int) {
	for _, e := range r.logs {
		given += strings.Count(e.log, "the shared store fails")
		for _, m := range back.FindAllStringSubmatch(e.log, -1) {
			n, _ := strconv.Atoi(m[1])
			local += n
		}
	}
	return given, local
}
