package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// reference is a fixed window as plain as can be, right unless it is given a bug or
// the habits of another make of store.
type reference struct {
	bug   string
	build build
	clock func() time.Time

	mu       sync.Mutex
	windows  map[string]*window
	accounts map[string]*account
}

type window struct {
	used        int
	opened, end time.Time
	span        time.Duration
	quota       int // when it opened
}

// build is a way in which stores that keep the contract differ.
type build struct {
	millis    bool // counts in whole milliseconds, rounded down, as a wall clock in a table does
	expires   bool // lets a window end after its last millisecond and adds one to what is left, as Redis does
	overcount bool // counts refusals of cost 1 beyond the quota, as INCR does
	straddles bool // in the first millisecond of a window refuses with a RetryAfter of 1 ms
	fixedOnly bool // refuses other costs than 1
}

func newReference(bug string, b build) *reference {
	return &reference{bug: bug, build: b, clock: time.Now, windows: map[string]*window{}, accounts: map[string]*account{}}
}

func (r *reference) has(bug string) bool { return r.bug == bug }

func (r *reference) now() time.Time {
	if r.build.millis || r.build.expires {
		return r.clock().Truncate(time.Millisecond)
	}
	return r.clock()
}

func (r *reference) live(w *window, now time.Time) bool {
	if r.has("never forgets") {
		return w != nil
	}
	if r.build.expires {
		return w != nil && !now.After(w.end)
	}
	return w != nil && now.Before(w.end)
}

func (r *reference) left(w *window, now time.Time) time.Duration {
	d := w.end.Sub(now)
	if r.build.expires {
		d += time.Millisecond
	}
	return min(d, w.span)
}

func (r *reference) key(k string) string {
	switch r.bug {
	case "folds keys to lower case":
		return strings.ToLower(k)
	case "trims keys":
		return strings.TrimSpace(k)
	case "cuts keys at 255 bytes":
		return k[:min(len(k), 255)]
	case "takes a key up to its first brace":
		k, _, _ = strings.Cut(k, "{")
	case "one counter for all keys":
		return ""
	}
	return k
}

func (r *reference) ready(ctx context.Context, h stores.Hit) error {
	if r.has("takes a quota of 0 for no limit") && h.Limit.Quota == 0 || r.has("does not validate the key") && (h.Key == "" || len(h.Key) > 512) {
		h.Limit.Quota, h.Key = 1, "x"
	}
	if r.has("allows a cost below 0") && h.Cost < 0 {
		h.Cost = 0
	}
	if r.has("refuses the longest key") && len(h.Key) == maxKey {
		return fmt.Errorf("%w: too long", stores.ErrInvalid)
	}
	if err := h.Validate(); err != nil {
		if r.has("returns another error for invalid hits") {
			return stores.ErrUnavailable
		}
		return err
	}
	switch err := ctx.Err(); {
	case err == nil || r.has("ignores a done context"):
	case r.has("wraps the context's error"):
		return fmt.Errorf("%w: %w", stores.ErrUnavailable, err)
	case r.has("heeds cancellation but no deadline") && err == context.DeadlineExceeded:
	default:
		return err
	}
	return nil
}

// window returns the live window of h, or one that h would open.
func (r *reference) window(h stores.Hit, now time.Time) (w *window, fresh bool) {
	if w := r.windows[r.key(h.Key)]; r.live(w, now) {
		return w, false
	}
	w = newWindow(h, now)
	if r.has("window aligned to the clock") {
		w.end = now.Truncate(h.Limit.Window).Add(h.Limit.Window)
	}
	if r.has("window half as long") {
		w.end = now.Add(h.Limit.Window / 2)
	}
	return w, true
}

func newWindow(h stores.Hit, now time.Time) *window {
	return &window{opened: now, end: now.Add(h.Limit.Window), span: h.Limit.Window, quota: h.Limit.Quota}
}

func (r *reference) Take(ctx context.Context, h stores.Hit) (stores.Decision, error) {
	if r.has("counts though the context is done") && ctx.Err() != nil {
		_, _ = r.take(context.Background(), h, 0, 0)
	}
	if r.has("counts what is invalid") && h.Cost < 0 {
		_, _ = r.take(ctx, costing(h, 1), 0, 0)
	}
	return r.take(ctx, h, 0, 0)
}

func (r *reference) take(ctx context.Context, h stores.Hit, owed int, until time.Duration) (d stores.Decision, err error) {
	if err := r.ready(ctx, h); err != nil {
		return d, err
	}
	quota, cost := h.Limit.Quota, max(h.Cost, 1)
	if r.has("takes cost 0 for nothing") {
		cost = h.Cost
	}
	if r.build.fixedOnly && (metered(h.Limit) || cost != 1) {
		return d, errUnsupported
	}
	if cost > quota {
		switch r.bug {
		case "gives a hopeless refusal a RetryAfter":
			d.RetryAfter, d.ResetAfter = h.Limit.Window, h.Limit.Window
			return d, nil
		case "counts a cost above the quota":
			_, _ = r.take(ctx, costing(h, 1), 0, 0)
			return d, nil
		case "a cost above the quota starts a block":
			_, _ = r.take(ctx, costing(h, quota), 0, 0)
			return d, nil
		case "adds costs without a look at overflow":
			if 1+cost > 0 {
				return d, nil
			}
		default:
			return d, nil
		}
	}
	if metered(h.Limit) {
		return r.takeMetered(h, cost, owed, until), nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	w, fresh := r.window(h, now)
	if r.has("two may open a window") && fresh {
		r.pause()
	}
	if owed > 0 {
		fresh = r.pay(w, fresh, h, owed, until, now)
	}
	switch r.bug {
	case "one hit too many":
		quota++
	case "one hit too few":
		quota = max(1, quota-1)
	case "prolongs the window with every hit":
		w.end = now.Add(h.Limit.Window)
	case "prolongs the window with refused hits":
		if w.used+cost > quota {
			w.end = now.Add(h.Limit.Window)
		}
	case "starts anew with another quota":
		if h.Limit.Quota != w.quota {
			w, fresh = newWindow(h, now), true
		}
	case "keeps the first quota":
		quota = w.quota
	case "another quota moves the end":
		if h.Limit.Quota != w.quota {
			w.end = now.Add(h.Limit.Window)
		}
	case "counts in 32-bit floats":
		w.used = int(float32(w.used))
	}
	used := w.used
	if r.build.overcount {
		used = min(used, quota)
	}
	if r.has("checks, then acts") {
		r.pause()
	}
	d.Allowed = used+cost <= quota
	if d.Allowed || r.has("counts refused costs") {
		w.used = used + cost
		fresh = r.keep(h, w)
	} else if r.build.overcount && cost == 1 {
		w.used++
		fresh = r.keep(h, w)
	}
	return r.decision(d.Allowed, h, w, now, fresh), nil
}

// pause lets others in between.
func (r *reference) pause() {
	r.mu.Unlock()
	time.Sleep(50 * time.Microsecond)
	r.mu.Lock()
}

func (r *reference) keep(h stores.Hit, w *window) (fresh bool) {
	r.windows[r.key(h.Key)] = w
	return false
}

func (r *reference) Supports(l stores.Limit) error {
	if r.has("Supports says yes to all") || !(r.build.fixedOnly && metered(l)) && !r.has("Supports says no to all") {
		return nil
	}
	return errUnsupported
}
