package handler

import (
	"context"
	"fmt"

	"github.com/sallyport/sallyport/stores"
)

// Take counts an event outside of a request under the policy of this name: a job, a
// message, a mail. The identity is what the policy's Key takes of a request, in the
// same spelling or any other that the key takes for it: an address for ByIP and
// ByNetwork, the value for ByHeader, ByCookie and ByFunc, the pattern for ByRoute,
// nothing for Everyone, whatever you like for Manual, and for Join and FirstOf those of all
// their keys, one after the other. It meets the same counter as a request with that
// identity.
//
// A cost of 0 means 1. The limit is Policy.Limit, since LimitBy needs a request, and
// Mode and Skip mean nothing here: what to do about a refusal is the caller's. An
// unknown policy, a wrong number of identities or one that can't be one is an error
// that wraps [stores.ErrInvalid]; other errors are those of [stores.Store], and none
// holds the identity.
func (g *Guard) Take(ctx context.Context, policy string, cost int, identity ...string) (stores.Decision, error) {
	p, hit, err := g.hit(policy, identity)
	if err != nil {
		return stores.Decision{}, err
	}
	hit.Cost = cost
	switch {
	case g.failover == nil:
		return g.memory.Take(ctx, hit)
	case p.Mode == Enforce:
		return g.failover.Take(ctx, hit)
	}
	// A refusal from memory is faster than one from the store, which for a Signal
	// policy would tell as much as another status.
	var out [1]stores.Decision
	if _, err := g.failover.TakeEach(ctx, []stores.Hit{hit}, []bool{true}, out[:]); err != nil {
		return stores.Decision{}, err
	}
	return out[0], nil
}

// Peek tells how Take would decide about a cost of 1, with what remains before it,
// and counts nothing. The errors are those of Take, and errors.ErrUnsupported from
// a store that can't look.
func (g *Guard) Peek(ctx context.Context, policy string, identity ...string) (stores.Decision, error) {
	_, hit, err := g.hit(policy, identity)
	if err != nil {
		return stores.Decision{}, err
	}
	if g.failover != nil {
		return g.failover.Peek(ctx, hit)
	}
	return g.memory.Peek(ctx, hit)
}

// Reset forgets what the policy counted for the identity: an operator's pardon. The
// errors are those of Take, and errors.ErrUnsupported from a store that can't
// forget.
func (g *Guard) Reset(ctx context.Context, policy string, identity ...string) error {
	_, hit, err := g.hit(policy, identity)
	if err != nil {
		return err
	}
	return g.reset(ctx, hit)
}

// hit makes the hit that a request with this identity would be.
func (g *Guard) hit(name string, texts []string) (*policy, stores.Hit, error) {
	if g == nil {
		return nil, stores.Hit{}, errNilGuard
	}
	p := g.byName[name]
	if p == nil {
		return nil, stores.Hit{}, fmt.Errorf("handler: %w policy %s: this guard has none of this name", stores.ErrInvalid, quoted(name))
	}
	source := p.Key.source
	if n := source.arity(); n >= 0 && n != len(texts) {
		return nil, stores.Hit{}, fmt.Errorf("handler: policy %s: %w identity: %d parts, want %d for the key %s", quoted(name), stores.ErrInvalid, len(texts), n, source)
	}
	var id identity
	ok, err := source.given(&id, texts)
	if err == nil && !ok {
		err = fmt.Errorf("%w identity: empty, for the key %s", stores.ErrInvalid, source)
	}
	if err != nil {
		return nil, stores.Hit{}, fmt.Errorf("handler: policy %s: %w", quoted(name), err)
	}
	return p, stores.Hit{
		Key:    g.storeKey(p, p.Limit, &id),
		Limit:  p.Limit,
		Outage: p.Outage,
	}, nil
}
