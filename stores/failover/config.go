package failover

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

const (
	defaultTimeout     = 500 * time.Millisecond
	defaultReserve     = 100 * time.Millisecond
	defaultMaxInFlight = 256

	// freshFactor times the Timeout, but at most freshLimit, is what a call gets that
	// probably has to open a connection first.
	freshFactor = 4
	freshLimit  = 2 * time.Second
	// idleAfter is how long the kit's stores keep an idle connection.
	idleAfter = 5 * time.Second

	// leastBudget is the least time in which a call is worth trying.
	leastBudget = 50 * time.Millisecond

	instancesVariable = "SALLYPORT_INSTANCES"
)

// Config configures New. Its zero value is good for most.
type Config struct {
	// Timeout is what the shared store gets to decide about one request, all its
	// policies together; 0 means 500 ms. A call that probably opens a connection (the
	// first one, the first after five idle seconds, and one that asks whether the store
	// is back) gets four times as long, but at most 2 s.
	Timeout time.Duration

	// Reserve is kept back from the caller's own deadline for its work after the
	// decision; 0 means 100 ms. When that leaves less than 50 ms, no call is made and
	// memory decides.
	Reserve time.Duration

	// MaxKeys is the cap on keys of the fallback (per limit shape, see memory.Config)
	// and on remembered refusals, 1 to 2^30; 0 means 50,000. Full, they take about 5 MB for
	// a shape of fixed windows without a block, 11 MB for one of others, and 6 MB for the
	// refusals.
	MaxKeys int

	// Instances is how many instances of the service may run: while the shared store
	// fails each grants max(1, Quota/Instances) in a window. 0 means the environment's
	// SALLYPORT_INSTANCES, and 1 without it.
	Instances int

	// MaxInFlight is how many calls to the shared store may run at once; 0 means 256.
	// Above it a hit waits within its deadline, then memory decides.
	MaxInFlight int

	// OnChange is told of each change of the breaker's state. It is called by the
	// request that brought the change, when that is decided, with no lock held, and may
	// call the store. It holds up that request; a panic is the request's.
	OnChange func(Change)

	// Logger gets a line when the shared store is given up and when it is back; nil
	// means slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	var err error
	if c.Timeout, err = duration("Timeout", c.Timeout, defaultTimeout); err != nil {
		return c, err
	}
	if c.Reserve, err = duration("Reserve", c.Reserve, defaultReserve); err != nil {
		return c, err
	}
	if c.MaxInFlight < 0 || c.MaxInFlight > 1<<20 {
		return c, fmt.Errorf("%w failover: MaxInFlight %d: want 0 (for %d) to 2^20", stores.ErrInvalid, c.MaxInFlight, defaultMaxInFlight)
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = defaultMaxInFlight
	}
	if c.Instances < 0 {
		return c, fmt.Errorf("%w failover: Instances %d: want 1 or more, or 0 for %s", stores.ErrInvalid, c.Instances, instancesVariable)
	}
	if c.Instances == 0 {
		c.Instances = 1
		if text := os.Getenv(instancesVariable); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return c, fmt.Errorf("%w failover: environment %s: want a whole number of 1 or more", stores.ErrInvalid, instancesVariable)
			}
			c.Instances = n
		}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, nil
}

func duration(name string, d, otherwise time.Duration) (time.Duration, error) {
	if d < 0 || d > time.Hour {
		return 0, fmt.Errorf("%w failover: %s %s: want 0 (for %s) to 1h", stores.ErrInvalid, name, d, otherwise)
	}
	if d == 0 {
		return otherwise, nil
	}
	return d, nil
}

// New returns a store that asks shared first. The methods of shared have to return soon
// after the context that they get is over: a call is not left to itself, and one that does
// not return takes its request along, and one of MaxInFlight. One that answers too late
// is heeded, and counts as a failure.
//
// What shared can do beyond Take is found out by its methods (stores.Batcher and its kin). So a
// type that embeds a store to do something more in Take has to do it in TakeAll too, and
// over package upstash in TakeChain, or several policies on one request pass by it.
//
// The error wraps stores.ErrInvalid for
// a Config out of its bounds, and for a shared store that is nil, that is itself a
// *Store, or that is a *memory.Store, which falls back on nothing.
func New(shared stores.Store, cfg Config) (*Store, error) {
	switch shared := shared.(type) {
	case nil:
		return nil, fmt.Errorf("%w failover: a nil shared store: for memory alone use memory.New", stores.ErrInvalid)
	case *Store:
		return nil, fmt.Errorf("%w failover: the shared store is a failover already", stores.ErrInvalid)
	case *memory.Store:
		return nil, fmt.Errorf("%w failover: the shared store is in memory: use it as it is (%T)", stores.ErrInvalid, shared)
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.MaxKeys < 0 || cfg.MaxKeys > 1<<30 {
		return nil, fmt.Errorf("%w failover: MaxKeys %d: want 0 (for %d) to 2^30", stores.ErrInvalid, cfg.MaxKeys, defaultMaxKeys)
	}
	s := &Store{
		cfg:      cfg,
		shared:   shared,
		fallback: newFallback(cfg.MaxKeys, cfg.Instances),
		inFlight: make(chan struct{}, cfg.MaxInFlight),
		refusals: newRefusals(cfg.MaxKeys),
		hot:      newHotKeys(cfg.MaxKeys),
	}
	s.debtor, _ = shared.(stores.Debtor)
	s.take = s.takeShared
	if c, ok := shared.(certainTaker); ok {
		s.take = c.TakeCertain
	}
	s.chain, s.plain = chainOf(shared)
	if p, ok := shared.(stores.Peeker); ok {
		s.peek = func(ctx context.Context, hit stores.Hit) (stores.Decision, bool, error) {
			d, err := p.Peek(ctx, hit)
			return d, false, err
		}
	}
	return s, nil
}
