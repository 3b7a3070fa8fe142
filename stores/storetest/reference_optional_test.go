package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sallyport/sallyport/stores"
)

var errUnsupported = fmt.Errorf("%w: use a fixed window", errors.ErrUnsupported)

func (r *reference) Peek(ctx context.Context, h stores.Hit) (stores.Decision, error) {
	if r.has("Peek counts") {
		return r.Take(ctx, h)
	}
	if err := r.ready(ctx, h); err != nil {
		return stores.Decision{}, err
	}
	cost, quota := max(h.Cost, 1), h.Limit.Quota
	if cost > quota {
		return stores.Decision{}, nil
	}
	if metered(h.Limit) {
		return r.peekMetered(h), nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	w, fresh := r.window(h, now)
	if r.has("Peek opens a window") && fresh {
		fresh = r.keep(h, w)
	}
	if r.has("Peek prolongs a window") && !fresh {
		w.end = now.Add(h.Limit.Window)
	}
	seen := *w
	seen.used = min(seen.used, quota)
	allowed := seen.used+cost <= quota || r.has("Peek always allows")
	d := r.decision(allowed, h, &seen, now, fresh)
	if r.has("Peek tells what remains after the hit") && allowed {
		d.Remaining -= cost
	}
	return d, nil
}

func (r *reference) Reset(ctx context.Context, h stores.Hit) error {
	if err := r.ready(ctx, costing(h, 1)); err != nil {
		return err
	}
	if metered(h.Limit) {
		r.resetMetered(h)
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.windows[r.key(h.Key)]
	switch {
	case r.has("Reset keeps the count"):
	case r.has("Reset keeps the window") && w != nil:
		w.used = 0
	case r.has("Reset forgets everybody"):
		clear(r.windows)
	case r.has("Reset of a missing key is an error") && w == nil:
		return stores.ErrUnavailable
	case r.has("Reset heeds the cost") && h.Cost > h.Limit.Quota:
	default:
		delete(r.windows, r.key(h.Key))
	}
	return nil
}

func (r *reference) Refund(ctx context.Context, h stores.Hit) error {
	if err := r.ready(ctx, h); err != nil {
		return err
	}
	if metered(h.Limit) {
		r.refundMetered(h)
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now, cost := r.now(), max(h.Cost, 1)
	w, fresh := r.window(h, now)
	if fresh {
		switch r.bug {
		case "Refund of a missing key is an error":
			return stores.ErrUnavailable
		case "Refund opens a window":
			r.keep(h, w)
		case "Refund of a missing key is credit":
			w.used = -cost
			r.keep(h, w)
		}
		return nil
	}
	used := min(w.used, h.Limit.Quota)
	if r.has("Refund gives back from what was refused too") || r.has("Refund counts from the level") {
		used = w.used
	}
	w.used = max(0, used-cost)
	switch r.bug {
	case "Refund goes below zero":
		w.used = used - cost
	case "Refund gives nothing back":
		w.used = used
	case "Refund gives 1 back":
		w.used = max(0, used-1)
	case "Refund prolongs the window":
		w.end = now.Add(h.Limit.Window)
	case "a refund is lost when two refund at once":
		w.used = used
		r.pause()
		w.used = max(0, used-cost)
	}
	return nil
}

func (r *reference) TakeAll(ctx context.Context, hits []stores.Hit, out []stores.Decision) (int, error) {
	if r.has("TakeAll wants out as long as hits") && len(out) != len(hits) {
		return 0, stores.ErrInvalid
	}
	if r.has("TakeAll charges behind a refusal") {
		for i, h := range hits {
			d, err := r.Take(ctx, h)
			if err != nil {
				return i, err
			}
			out[i] = d
			if !d.Allowed {
				for _, h := range hits[i+1:] {
					_, _ = r.Take(ctx, h)
				}
				return i + 1, nil
			}
		}
		return len(hits), nil
	}
	for i, h := range hits {
		if r.has("TakeAll starts no block") {
			if d, err := r.Peek(ctx, h); err == nil && !d.Allowed && h.Limit.Block > 0 {
				h.Limit.Block = 0
				d, _ = r.Peek(ctx, h)
				d.Remaining = 0
				out[i] = d
				return i + 1, nil
			}
		}
		if r.has("TakeAll counts a key once") && i > 0 && h == hits[i-1] {
			out[i] = out[i-1]
			continue
		}
		d, err := r.Take(ctx, h)
		if err != nil {
			if r.has("TakeAll goes on behind an error") {
				for _, h := range hits[i+1:] {
					_, _ = r.Take(ctx, h)
				}
			}
			return i, err
		}
		out[i] = d
		if d.Allowed || r.has("TakeAll goes on behind a refusal") {
			continue
		}
		if r.has("TakeAll takes back what came before a refusal") {
			for _, h := range hits[:i] {
				_ = r.Refund(ctx, h)
			}
		}
		if r.has("TakeAll does not count the refusal in n") {
			return i, nil
		}
		return i + 1, nil
	}
	if r.has("TakeAll changes the hits") {
		clear(hits)
	}
	return len(hits), nil
}

func (r *reference) TakeOwing(ctx context.Context, h stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	if (owed < 0 || until < 0 || until > h.Limit.Window) && !r.has("allows a debt below 0") {
		return stores.Decision{}, stores.ErrInvalid
	}
	if until == 0 && !r.has("takes what is owed for no time") {
		owed = 0
	}
	return r.take(ctx, h, owed, until)
}
