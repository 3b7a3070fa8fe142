package webhook

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// failureLimit is how often a source may fail before it is told to wait. Nothing hangs
// on it but what it is told.
var failureLimit = stores.FixedWindow(10, time.Minute)

// maxSources bounds the memory, to some 500 KB.
const maxSources = 10_000

// failures counts bad signatures by source. They live in this instance's memory and
// nowhere else: a flood of forgeries must not cost a store a call.
type failures struct {
	guards  [2]*handler.Guard // who may know how to find the client's address
	counted *memory.Store
}

func newFailures(guards ...*handler.Guard) (*failures, error) {
	f := &failures{}
	copy(f.guards[:], guards)
	var err error
	if f.counted, err = memory.New(memory.Config{MaxKeys: maxSources}); err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return f, nil
}

// count counts a bad signature and returns what to answer.
func (f *failures) count(r *http.Request) (status int, wait time.Duration) {
	d, err := f.counted.Take(context.WithoutCancel(r.Context()), stores.Hit{Key: f.source(r), Limit: failureLimit})
	if err == nil && !d.Allowed {
		return http.StatusTooManyRequests, d.RetryAfter
	}
	return http.StatusUnauthorized, 0
}

// source is the client's address as a guard finds it, else the peer's, an IPv6 address by
// its /64. Those without any are one.
func (f *failures) source(r *http.Request) string {
	var addr netip.Addr
	for _, g := range f.guards {
		if addr = g.ClientAddr(r); addr.IsValid() {
			break
		}
	}
	if !addr.IsValid() {
		if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			addr = peer.Addr().Unmap().WithZone("")
		}
	}
	if addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			addr = network.Addr()
		}
	}
	return addr.String()
}
