package handler

import (
	"fmt"
	"net/http"
	"net/netip"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
)

// Guard is policies over one store. Make one with [New]; a nil Guard refuses all
// with 503. It is safe for concurrent use, and no lock is held while it calls
// anything of yours.
type Guard struct {
	*common
	policies []policy
	byName   map[string]*policy
	quotas   []string // the whole RateLimit-Policy field, shared by responses
	plain    bool     // no policy has a Skip or LimitBy, so quotas always holds
	signals  bool     // a policy is in Signal mode
}

func newGuard(c *common, policies []Policy) (*Guard, error) {
	if len(policies) == 0 {
		return nil, fmt.Errorf("handler: %w policies: none given: want at least one", stores.ErrInvalid)
	}
	g := &Guard{
		common:   c,
		policies: make([]policy, len(policies)),
		byName:   make(map[string]*policy, len(policies)),
		plain:    true,
	}
	var field []byte
	manualOnly := true
	for i := range policies {
		p := &g.policies[i]
		var err error
		if *p, err = newPolicy(policies[i], c); err != nil {
			return nil, err
		}
		if g.byName[p.Name] != nil {
			return nil, fmt.Errorf("handler: %w policies: two are named %s", stores.ErrInvalid, quoted(p.Name))
		}
		g.byName[p.Name] = p
		manualOnly = manualOnly && p.manual
		g.plain = g.plain && p.Skip == nil && p.LimitBy == nil
		g.signals = g.signals || p.Mode == Signal && !p.manual
		if p.shown {
			field = appendItem(field, p.quota)
		}
	}
	if !manualOnly && c.clientIP.zero() {
		return nil, fmt.Errorf("handler: %w ClientIP: none chosen: want one such as handler.Direct() or handler.CloudRun()", stores.ErrInvalid)
	}
	if len(field) > 0 {
		g.quotas = []string{string(field)}
	}
	g.warnOfOrder()
	return g, nil
}

// warnOfOrder speaks of policies by which a caller who is about to be refused uses
// up what others share.
func (g *Guard) warnOfOrder() {
	var last *policy
	for i := range g.policies {
		p := &g.policies[i]
		if p.Key.source.rank() == rankUnknown {
			continue
		}
		if last != nil && p.Key.source.rank() < last.Key.source.rank() {
			g.logger.Warn("sallyport: policies are out of order: ask first who asks (address, API key), then what is asked for (account, e-mail), then everyone",
				"before", last.Name, "after", p.Name)
			return
		}
		last = p
	}
}

// With returns a guard with other policies over the same store, breaker and memory,
// and with the same answers: one guard for each route. Names are unique within one
// guard; in two guards one name with one algorithm and window is one counter, which
// is how routes share a limit. The errors are those of [New].
func (g *Guard) With(policies ...Policy) (*Guard, error) {
	if g == nil {
		return nil, errNilGuard
	}
	return newGuard(g.common, policies)
}

// Handler returns a handler that asks g about each request and runs next, or
// answers with the refusal ([Verdict.Refuse]). Rate limit fields are set before
// next runs. The ResponseWriter is handed on as it is, so that flushing, hijacking
// and the rest work as without the guard.
//
// Place it inside what sets CORS and security headers, so that a browser can read a
// refusal, and outside of what compresses, changes the method or consumes the body.
// HEAD counts like GET, the method being that on the wire. A CORS preflight (OPTIONS
// with Origin and Access-Control-Request-Method, and without a body or a header that
// overrides the method) reaches next uncounted, whoever made it: next should do
// nothing for OPTIONS but answer it. Scripts read the fields only if
// Access-Control-Expose-Headers names them: Retry-After, RateLimit, RateLimit-Policy.
//
// Like ServeMux.Handle, it panics if next is nil, so that a handler that was forgotten
// shows when the program starts and not with the first visitor.
func (g *Guard) Handler(next http.Handler) http.Handler {
	if f, isFunc := next.(http.HandlerFunc); next == nil || isFunc && f == nil {
		panic("handler: Guard.Handler of a nil http.Handler")
	}
	return &guarded{g, next}
}

type guarded struct {
	guard *Guard
	next  http.Handler
}

func (h *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := h.guard
	if g == nil {
		g.Check(r).Refuse(w, r)
		return
	}
	q := newInquiry(g, r)
	d := &q.detail
	inContext := g.signals || g.verdicts
	if inContext || g.observe != nil {
		d = new(detail)
	}
	v := g.ask(q, d)
	if v.Status != 0 {
		v.refuse(w, r, q)
		q.release()
		return
	}
	v.SetHeaders(w.Header())
	if !inContext && len(q.values) == 0 {
		q.release()
		h.next.ServeHTTP(w, r)
		return
	}
	ctx := q.context(r.Context())
	q.release()
	if inContext {
		ctx = withVerdict(ctx, v)
	}
	serveIn(ctx, h.next, w, r)
}

// ClientAddr returns the client's address as Config.ClientIP finds it, unmapped and
// without a zone; the zero Addr if there is none that can be believed.
func (g *Guard) ClientAddr(r *http.Request) netip.Addr {
	if g == nil {
		return netip.Addr{}
	}
	addr, state := g.clientIP.resolve(r)
	if state != addrOK {
		return netip.Addr{}
	}
	return addr
}

// Stats returns the counters of the failover, which all guards over one store share.
// On memory alone only Memory is filled.
func (g *Guard) Stats() failover.Stats {
	switch {
	case g == nil:
		return failover.Stats{}
	case g.failover != nil:
		return g.failover.Stats()
	}
	return failover.Stats{Memory: g.memory.Stats()}
}
