package handler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// Status of a request whose caller hung up before it was decided, as proxies write
// it into their logs. It is no registered code, because nobody receives it.
const statusClientClosedRequest = 499

// Verdict is what a guard makes of a request. It is a value: copies are alike, and
// all of its methods may be called at the same time. The zero Verdict is not
// allowed.
type Verdict struct {
	// Allowed tells that no Enforce and no Signal policy refused, and that Status
	// is 0.
	Allowed bool

	// Status is 0 if the handler is to run, and else the status of the refusal: 429,
	// 503 when a policy that refuses in an outage could not be decided or a store
	// returned an error, 403 for Config.Deny and [ClientIP.Strict], 413 and 400 when
	// [ByForm] or [ByJSON] could not read the body, in which case no store was asked, and
	// 499 when the caller had hung up: he hears nothing, and what was counted stays
	// counted.
	Status int

	// Outcomes are the policies that were decided, in the order asked. Policies behind
	// a refusal, skipped ones and those of [Manual] are not among them; with a refusal
	// that was remembered, it alone is. They are not to be changed.
	Outcomes []Outcome

	// Elapsed is the time spent in stores. It is measured only if Config.Observe is
	// set.
	Elapsed time.Duration

	// Err is the error of the caller's context (with status 499), or a fault of a
	// store that was turned into an answer. A failure of the shared store that the
	// fallback made good is no error of a Verdict: see Decision.Fault.
	Err error

	detail *detail
}

// Outcome is what one policy made of a request.
type Outcome struct {
	Policy string
	Mode   Mode
	Limit  stores.Limit // by which it was decided: the policy's own, or that of LimitBy
	stores.Decision
}

// detail is what a Verdict knows beside its public fields.
type detail struct {
	guard     *Guard
	asked     []asked
	hits      []stores.Hit // of asked
	outcomes  []Outcome
	refusing  int  // index of the policy in asked that gave the Status; -1: none
	signalled bool // a Signal policy refused
	denied    bool // by Config.Deny
	refunded  atomic.Bool

	// Most guards have one or two policies: their room needs no allocation of its own.
	askedRoom   [2]asked
	hitsRoom    [2]stores.Hit
	outcomeRoom [2]Outcome
}

// asked is a policy that applies to a request.
type asked struct {
	policy  *policy
	outcome int // index in outcomes; -1: not decided
}

func (d *detail) begin(g *Guard) {
	d.guard, d.refusing, d.signalled, d.denied = g, -1, false, false
	if d.asked == nil {
		d.asked, d.hits, d.outcomes = d.askedRoom[:0], d.hitsRoom[:0], d.outcomeRoom[:0]
	}
}

// reset lets go of what the request held.
func (d *detail) reset() {
	d.guard = nil
	clear(d.asked)
	clear(d.hits)
	clear(d.outcomes)
	d.asked, d.hits, d.outcomes = d.asked[:0], d.hits[:0], d.outcomes[:0]
}

// keep returns a Verdict that stays as it is when the inquiry serves other
// requests.
func (v Verdict) keep() Verdict {
	d := v.detail
	kept := &detail{guard: d.guard, refusing: d.refusing, signalled: d.signalled, denied: d.denied}
	kept.asked = append(kept.askedRoom[:0], d.asked...)
	kept.hits = append(kept.hitsRoom[:0], d.hits...)
	kept.outcomes = append(kept.outcomeRoom[:0], d.outcomes...)
	v.detail, v.Outcomes = kept, kept.outcomes[:len(kept.outcomes):len(kept.outcomes)]
	return v
}

// Of returns the outcome of the policy of this name; false if it was not decided.
func (v Verdict) Of(policy string) (Outcome, bool) {
	for _, o := range v.Outcomes {
		if o.Policy == policy {
			return o, true
		}
	}
	return Outcome{}, false
}

// What a client is told to wait when nothing is known: the breaker of package
// failover opens for 1 to 5 seconds after most failures.
const unknownWait = 5 * time.Second

// RetryAfter is how long the client should wait; [Verdict.Refuse] sends it in
// seconds, rounded up. It is 0 for an allowed request, for a 403, 413 or 400, and for a
// cost above the quota, which no waiting helps. The wait of a policy that is not shown in
// the RateLimit fields is rounded up to a quarter of its window. If nothing but
// Signal policies refused it is the longest of theirs.
func (v Verdict) RetryAfter() time.Duration { return v.retryAfter() }

func (v *Verdict) retryAfter() time.Duration {
	switch {
	case v.Allowed || v.Status != 0 && v.Status != http.StatusTooManyRequests && v.Status != http.StatusServiceUnavailable:
		return 0
	case v.Status == 0:
		var longest time.Duration
		for i := range v.Outcomes {
			if o := &v.Outcomes[i]; o.Mode != Report && !o.Allowed {
				longest = max(longest, quarters(o.RetryAfter, o.Limit.Window))
			}
		}
		return longest
	}
	o := v.refusal()
	switch {
	case v.Status == http.StatusServiceUnavailable:
		if o == nil || o.RetryAfter <= 0 {
			return unknownWait
		}
		return o.RetryAfter
	case o == nil || v.hopeless():
		return 0
	case !v.refusing().shown:
		return quarters(max(1, o.RetryAfter), o.Limit.Window)
	}
	return max(1, o.RetryAfter)
}

// quarters rounds a wait up to a quarter of the window.
func quarters(wait, window time.Duration) time.Duration {
	quarter := max(1, window/4)
	return (wait + quarter - 1) / quarter * quarter
}

// refusing returns the policy that gave the Status, nil if none did.
func (v *Verdict) refusing() *policy {
	if v.detail == nil || v.detail.refusing < 0 {
		return nil
	}
	return v.detail.asked[v.detail.refusing].policy
}

// refusal returns its outcome, nil if it has none.
func (v *Verdict) refusal() *Outcome {
	if v.refusing() == nil {
		return nil
	}
	if i := v.detail.asked[v.detail.refusing].outcome; i >= 0 {
		return &v.detail.outcomes[i]
	}
	return nil
}

// hopeless tells that the request costs more than the whole quota.
func (v *Verdict) hopeless() bool {
	o := v.refusal()
	return o != nil && v.detail.hits[v.detail.refusing].Cost > o.Limit.Quota
}

// Refund gives back what this Verdict charged, in all of its policies, for instance
// after a request that turned out to be the server's own fault. A refused policy
// charged nothing. It does so once: another call, also on a copy, does nothing and
// returns nil, whatever the first returned, since a store that failed may have given
// back all the same. A store that can't refund returns an error that wraps
// errors.ErrUnsupported.
func (v Verdict) Refund(ctx context.Context) error {
	d := v.detail
	if d == nil || d.guard == nil || d.refunded.Swap(true) {
		return nil
	}
	var errs []error
	for i, a := range d.asked {
		if a.outcome < 0 || !d.outcomes[a.outcome].Allowed {
			continue
		}
		if err := d.guard.refund(ctx, d.hits[i], d.outcomes[a.outcome].Source); err != nil {
			errs = append(errs, fmt.Errorf("handler: policy %s: %w", quoted(a.policy.Name), err))
		}
	}
	return errors.Join(errs...)
}

// Reset forgets all that the policy counted for this request's identity, for
// instance after a right password. Only do so for a policy that is keyed on the
// account: by logging in to one of his own, an attacker would clear what his address
// has used up. A policy that this Verdict did not ask is an error that wraps
// [stores.ErrInvalid].
func (v Verdict) Reset(ctx context.Context, policy string) error {
	if d := v.detail; d != nil {
		for i, a := range d.asked {
			if a.policy.Name == policy {
				return d.guard.reset(ctx, d.hits[i])
			}
		}
	}
	if v.detail == nil && v.Outcomes == nil {
		return fmt.Errorf("handler: %w policy %s: this verdict is empty: set Config.Verdicts for FromContext to find one", stores.ErrInvalid, quoted(policy))
	}
	return fmt.Errorf("handler: %w policy %s: this verdict did not ask it", stores.ErrInvalid, quoted(policy))
}
