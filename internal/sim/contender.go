package sim

import (
	"context"
	"log/slog"
	"time"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
	"github.com/sallyport/sallyport/stores/memory"
)

// Contender is a way to meet the failures of a shared store. open makes one instance
// of a fleet of so many.
type Contender struct {
	Name string
	open func(shared *line, instances int) (stores.Store, error)
}

// Kit is this kit, Contenders are all that are tried.
var (
	Kit = Contender{"this kit", func(shared *line, instances int) (stores.Store, error) {
		return failover.New(shared, failover.Config{Instances: instances, Logger: slog.New(slog.DiscardHandler)})
	}}
	Contenders = []Contender{
		Kit,
		{"fail open", plainly(true)},
		{"fail closed", plainly(false)},
		{"own count", func(shared *line, _ int) (stores.Store, error) {
			own, err := memory.New(memory.Config{})
			return plain{shared, own}, err
		}},
	}
)

// callTime is what the plain contenders give the shared store, as the kit does.
const callTime = 500 * time.Millisecond

// plain asks the shared store each time, and otherwise, when that fails, afresh.
type plain struct {
	shared    stores.Store
	otherwise stores.Store
}

// Take implements stores.Store.
func (p plain) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	asked, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	d, err := p.shared.Take(asked, hit)
	if err != nil {
		return p.otherwise.Take(ctx, hit)
	}
	return d, nil
}

func plainly(allow bool) func(*line, int) (stores.Store, error) {
	return func(shared *line, _ int) (stores.Store, error) { return plain{shared, always(allow)}, nil }
}

// always decides alike about every hit.
type always bool

// Take implements stores.Store.
func (a always) Take(context.Context, stores.Hit) (stores.Decision, error) {
	return stores.Decision{Allowed: bool(a), Source: stores.Local}, nil
}
