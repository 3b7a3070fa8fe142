package handler

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sallyport/sallyport/stores"
)

var errNilGuard = fmt.Errorf("handler: %w: a nil *Guard: make one with handler.New", stores.ErrMisconfigured)

// Check asks the policies about r and counts it: what [Guard.Handler] does, without
// the answer. Run the handler if the Verdict's Status is 0, after
// [Verdict.SetHeaders]; else answer with [Verdict.Refuse]. For [ByForm] and [ByJSON]
// it replaces r.Body by an equal one; what they read is for [KeyValue] behind
// Guard.Handler alone, because Check can't change r's context.
func (g *Guard) Check(r *http.Request) Verdict {
	if g == nil {
		return Verdict{Status: http.StatusServiceUnavailable, Err: errNilGuard}
	}
	q := newInquiry(g, r)
	v := g.ask(q, new(detail))
	q.release()
	return v
}

// ask fills d, which the Verdict keeps.
func (g *Guard) ask(q *inquiry, d *detail) Verdict {
	d.begin(g)
	v := Verdict{detail: d}
	g.judge(q, &v)
	v.Outcomes = d.outcomes[:len(d.outcomes):len(d.outcomes)]
	if g.observe != nil {
		g.observe(q.r.Context(), v)
	}
	return v
}

func (g *Guard) judge(q *inquiry, v *Verdict) {
	d, r := v.detail, q.r
	if len(g.allow)+len(g.deny) > 0 {
		addr, state := q.client()
		if state == addrOK && inPrefixes(g.allow, addr) {
			v.Allowed = true
			return
		}
		if addr.IsValid() && inPrefixes(g.deny, addr) {
			v.Status, d.denied = http.StatusForbidden, true
			return
		}
	}
	if isPreflight(r) {
		v.Allowed = true
		return
	}
	for i := range g.policies {
		p := &g.policies[i]
		if p.manual || q.skips(p) {
			continue
		}
		if len(d.asked) == 0 && g.clientIP.strict() {
			if _, state := q.client(); state != addrOK {
				v.Status = http.StatusForbidden
				return
			}
		}
		limit := q.limit(p)
		if q.identify(p); q.refusal != 0 && p.Mode == Report {
			q.pretend(p)
		} else if q.refusal != 0 {
			if v.Status = q.refusal; r.Context().Err() != nil {
				v.Status, v.Err = statusClientClosedRequest, r.Context().Err()
			}
			return
		}
		d.asked = append(d.asked, asked{policy: p, outcome: -1})
		d.hits = append(d.hits, stores.Hit{
			Key:    g.storeKey(p, limit, &q.id),
			Limit:  limit,
			Cost:   q.cost(p),
			Outage: p.Outage,
		})
	}
	if len(d.asked) == 0 {
		v.Allowed = true
		return
	}
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		v.Status, v.Err = statusClientClosedRequest, err
		return
	}
	if g.observe != nil {
		start := time.Now()
		g.count(ctx, q, v)
		v.Elapsed = time.Since(start)
	} else {
		g.count(ctx, q, v)
	}
}

// count asks the store about all hits and draws the Verdict from its decisions.
func (g *Guard) count(ctx context.Context, q *inquiry, v *Verdict) {
	if g.failover != nil {
		g.countShared(ctx, q, v)
	} else {
		g.countAlone(ctx, v)
	}
	d := v.detail
	switch {
	case v.Status != 0: // the caller is gone
	case d.refusing < 0:
		v.Allowed = !d.signalled
	default:
		v.Status = http.StatusTooManyRequests
		if o := v.refusal(); o == nil || o.Source == stores.None {
			v.Status = http.StatusServiceUnavailable
		}
	}
}

// countAlone counts on memory alone.
func (g *Guard) countAlone(ctx context.Context, v *Verdict) {
	d := v.detail
	for i := 0; i < len(d.hits) && d.refusing < 0; i++ {
		decision, err := g.memory.Take(ctx, d.hits[i])
		if err != nil {
			if g.failed(ctx, v, i, err); v.Status != 0 {
				return
			}
			continue
		}
		d.note(i, &decision)
	}
}

// countShared counts by the failover, in one call unless a store errs.
func (g *Guard) countShared(ctx context.Context, q *inquiry, v *Verdict) {
	d := v.detail
	n := len(d.hits)
	q.open, q.out = q.open[:0], q.out[:0]
	for i := range d.asked {
		q.open = append(q.open, d.asked[i].policy.Mode != Enforce)
		q.out = append(q.out, stores.Decision{})
	}
	for from := 0; from < n && d.refusing < 0; {
		decided, err := g.failover.TakeEach(ctx, d.hits[from:], q.open[from:], q.out[from:])
		first, end := from, from+decided
		if decided > 0 && remembered(&q.out[end-1]) {
			// It was found before anything was charged: the ones before it were not asked.
			first = end - 1
		}
		for i := first; i < end; i++ {
			d.note(i, &q.out[i])
		}
		if from = end; err != nil && from < n {
			if g.failed(ctx, v, from, err); v.Status != 0 {
				return
			}
			from++
		}
	}
	// A store call outlives the caller, so he may be gone now.
	if gone := ctx.Err(); gone != nil {
		v.Status, v.Err = statusClientClosedRequest, gone
	}
}

// failed draws the consequence of an error in place of the decision on hit i. No
// decision is never a free pass; but where a refusal ends nothing, neither does an
// error, and a Signal policy has not allowed the request.
func (g *Guard) failed(ctx context.Context, v *Verdict, i int, err error) {
	if gone := ctx.Err(); gone != nil {
		v.Status, v.Err = statusClientClosedRequest, gone
		return
	}
	p := v.detail.asked[i].policy
	g.reports.store.note(g.logger, "the store returned an error instead of a decision", "policy", p.Name, "error", err)
	v.Err = err
	v.detail.refused(i)
}

// note files the decision on the policy at i.
func (d *detail) note(i int, decision *stores.Decision) {
	p := d.asked[i].policy
	d.asked[i].outcome = len(d.outcomes)
	d.outcomes = append(d.outcomes, Outcome{Policy: p.Name, Mode: p.Mode, Limit: d.hits[i].Limit, Decision: *decision})
	if !decision.Allowed {
		d.refused(i)
	}
}

// refused files what a refusal by the policy at i means in its mode.
func (d *detail) refused(i int) {
	switch d.asked[i].policy.Mode {
	case Enforce:
		d.refusing = i
	case Signal:
		d.signalled = true
	}
}

func remembered(d *stores.Decision) bool { return d.Source == stores.Remembered && !d.Allowed }

// isPreflight tells a browser's question whether it may ask (Fetch standard,
// section "CORS-preflight request") from any other OPTIONS. A preflight has neither a
// body nor headers of a script's making, so that a handler which does not look at the
// method, or one behind a method override, gets no work out of a forged one.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.ContentLength == 0 &&
		r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != "" &&
		len(r.Header["X-Http-Method-Override"])+len(r.Header["X-Http-Method"])+len(r.Header["X-Method-Override"]) == 0
}
