package handler

import (
	"net/http"
	"net/netip"
	"sync"

	"github.com/sallyport/sallyport/stores"
)

// inquiry is what a guard needs while it asks about one request. It is used again
// for others, so nothing that outlives the question points into it.
type inquiry struct {
	guard *Guard
	r     *http.Request

	addr  netip.Addr
	state addrState
	known bool // addr and state are

	id   identity
	body content

	// What keys made of the body: the values that they read, or, if refusal is not 0,
	// the status with which the request is refused because one could not. With misfits
	// it is for the Content-Type alone.
	values  []fieldValue
	refusal int
	misfits bool

	open []bool
	out  []stores.Decision
	text []byte // of a refusal

	// detail serves requests whose Verdict nobody keeps.
	detail detail
}

var inquiries = sync.Pool{New: func() any { return new(inquiry) }}

// maxIdle is the largest buffer that is kept for other requests, in bytes.
const maxIdle = 4096

func newInquiry(g *Guard, r *http.Request) *inquiry {
	q := inquiries.Get().(*inquiry)
	q.guard, q.r, q.known = g, r, false
	return q
}

// release must not be deferred: what a panic of a hook leaves behind is garbage.
func (q *inquiry) release() {
	q.guard, q.r, q.addr = nil, nil, netip.Addr{}
	// What is refused for its query alone has no body that was read.
	q.refusal, q.misfits = 0, false
	if q.body.read {
		q.body = content{}
		clear(q.values)
		q.values = q.values[:0]
	}
	if cap(q.id.text) > maxIdle {
		q.id.text = nil
	}
	if cap(q.text) > maxIdle {
		q.text = nil
	}
	clear(q.out)
	q.detail.reset()
	inquiries.Put(q)
}

// client resolves the client's address once a request.
func (q *inquiry) client() (netip.Addr, addrState) {
	if !q.known {
		q.addr, q.state = q.guard.clientIP.resolve(q.r)
		q.known = true
	}
	return q.addr, q.state
}

// identify finds whose request it is, by p's key, or sets refusal.
func (q *inquiry) identify(p *policy) {
	q.id.reset()
	if !p.Key.source.identify(q) && q.refusal == 0 {
		q.id.reset()
		addNone(q)
	}
}

// pretend counts a body that p's key can't read as one without the field, because a
// policy in Report mode refuses nobody.
func (q *inquiry) pretend(p *policy) {
	q.guard.reports.unread.note(q.guard.logger, "a policy in Report mode could not read requests' bodies, which any other mode would refuse", "policy", p.Name, "status", q.refusal)
	q.refusal, q.misfits = 0, false
	q.id.reset()
	addNone(q)
}

// limit returns the limit of p for this request.
func (q *inquiry) limit(p *policy) (limit stores.Limit) {
	if p.LimitBy == nil {
		return p.Limit
	}
	defer q.recover("LimitBy", func() { limit = p.Limit })
	limit = p.LimitBy(q.r)
	if limit == p.Limit || limit == (stores.Limit{}) {
		return p.Limit
	}
	err := limit.Validate()
	if err == nil {
		err = q.guard.supports(limit)
	}
	if err != nil {
		q.guard.reports.limit.note(q.guard.logger, "LimitBy chose a limit that can't be used; the policy's own holds", "policy", p.Name, "error", err)
		return p.Limit
	}
	return limit
}

func (q *inquiry) cost(p *policy) (cost int) {
	if p.Cost == nil {
		return 1
	}
	defer q.recover("Cost", func() { cost = 1 })
	return max(1, p.Cost(q.r))
}

func (q *inquiry) skips(p *policy) (skip bool) {
	if p.Skip == nil {
		return false
	}
	defer q.recover("Skip", func() { skip = false })
	return p.Skip(q.r)
}

// recover keeps a panic of a user's function from costing the visitor his answer,
// and the guard its count. It is to be deferred.
func (q *inquiry) recover(what string, instead func()) {
	p := recover()
	if p == nil {
		return
	}
	instead()
	q.guard.reports.panics.note(q.guard.logger, "a function of a policy panicked", "function", what, "panic", panicText(p))
}
