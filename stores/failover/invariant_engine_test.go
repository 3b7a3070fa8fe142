package failover_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/internal/sim"
	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/dynamo"
	"github.com/sallyport/sallyport/stores/failover"
	"github.com/sallyport/sallyport/stores/upstash"
)

// engine is a shared store with a real engine behind it, which comes and goes.
type engine struct {
	open  func(t *testing.T) stores.Store
	flap  func(rng *rand.Rand) // to some other state, good or bad
	heal  func()
	check func(t *testing.T) // of what the engine holds; may be nil
}

// Three instances whose store flaps: no key has more in a window than the quota and each
// instance's share of it, and when the store is back, a window has the quota and no more.
func TestFleetBeforeAnEngineThatFlaps(t *testing.T) {
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		flapInRealTime(t, redisEngine(upstashtest.NewReal(t), new(http.Transport)))
	})
	t.Run("dynalite", func(t *testing.T) {
		t.Parallel()
		flapInRealTime(t, dynaliteEngine(t))
	})
	t.Run("miniredis", func(t *testing.T) {
		inBubbles(t, func(t *testing.T) engine {
			srv := upstashtest.NewBubble(t)
			return redisEngine(srv, srv.Transport())
		})
	})
	t.Run("minidyn", func(t *testing.T) { inBubbles(t, minidynEngine) })
}

func openUpstash(t *testing.T, url string, transport http.RoundTripper) stores.Store {
	s, err := upstash.New(upstash.Config{URL: url, Token: upstashtest.DefaultToken, Transport: transport, Timeout: 20 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return s
}

func redisEngine(srv *upstashtest.Server, way http.RoundTripper) engine {
	line := &cutting{way: way}
	heal := func() {
		srv.CutAfterApply(0)
		srv.SetSlotError("*", "")
		line.state.Store(0)
	}
	return engine{
		open: func(t *testing.T) stores.Store { return openUpstash(t, srv.URL, line) },
		heal: heal,
		flap: func(rng *rand.Rand) {
			heal()
			switch n := rng.Int32N(7); n {
			case 1, 2:
				line.state.Store(n)
			case 3:
				srv.CutAfterApply(1 << 30)
			case 4:
				srv.SetSlotError("*", "READONLY x")
			}
		},
		check: func(t *testing.T) {
			ttl, err := srv.Do("PTTL", "k")
			require.NoError(t, err)
			require.NotEqual(t, int64(-1), ttl, "a counter without an end")
		},
	}
}

var manners = []dynamotest.Manner{
	dynamotest.DropBefore(), dynamotest.DropAfter(), dynamotest.Throttle("ThrottlingException"),
	dynamotest.FailAfter(500, "InternalServerError", ""), dynamotest.CutBody(),
}

func minidynEngine(t *testing.T) engine {
	server := dynamotest.New(t)
	heal := func() { server.SetDown(false); server.ClearFaults() }
	return engine{
		open: func(t *testing.T) stores.Store { return openDynamo(t, server.Client()) },
		heal: heal,
		flap: func(rng *rand.Rand) {
			heal()
			switch n := rng.IntN(2 * (len(manners) + 1)); {
			case n < len(manners):
				server.SetFault(dynamotest.Fault{Do: manners[n]})
			case n == len(manners):
				server.SetDown(true)
			}
		},
	}
}

func openDynamo(t *testing.T, client dynamo.Client) stores.Store {
	s, err := dynamo.New(dynamo.Config{Client: client, Table: dynamotest.Table, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return s
}

// cutting is a way to an engine that refuses connections (1), or cuts them when the
// answer comes (2).
type cutting struct {
	way   http.RoundTripper
	state atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	state := c.state.Load()
	if state == 1 {
		return nil, errors.Join(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, r.Body.Close())
	}
	resp, err := c.way.RoundTrip(r)
	if err == nil && state == 2 {
		_ = resp.Body.Close()
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return resp, err
}

func dynaliteEngine(t *testing.T) engine {
	endpoint := *dynamotest.Dynalite(t).Options().BaseEndpoint
	line := &cutting{way: new(http.Transport)}
	return engine{
		open: func(t *testing.T) stores.Store { return openDynamo(t, dynamotest.NewClient(endpoint, line)) },
		heal: func() { line.state.Store(0) },
		flap: func(rng *rand.Rand) { line.state.Store(rng.Int32N(4)) },
	}
}

const fleetSize = 3

// flappingFleet is a fleet before an engine, and one key that is hammered.
type flappingFleet struct {
	engine
	limit     stores.Limit
	instances []*failover.Store

	mu       sync.Mutex
	admitted []time.Time
}

func newFlappingFleet(t *testing.T, e engine, limit stores.Limit, timeout time.Duration) *flappingFleet {
	f := &flappingFleet{engine: e, limit: limit}
	for range fleetSize {
		s, err := failover.New(e.open(t), failover.Config{Instances: fleetSize, Timeout: timeout, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		f.instances = append(f.instances, s)
	}
	return f
}

// storm hammers the key from each instance for so long, while the engine flaps, and then
// heals it.
func (f *flappingFleet) storm(t *testing.T, rng *rand.Rand, length, pause time.Duration) {
	var all sync.WaitGroup
	for _, s := range f.instances {
		seed := rng.Uint64()
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for begun := time.Now(); time.Since(begun) < length; time.Sleep(time.Duration(rng.Int64N(int64(2 * pause)))) {
				ctx, hangUp := context.WithCancel(context.Background())
				if rng.IntN(3) == 0 {
					time.AfterFunc(3*time.Millisecond, hangUp)
				}
				cost := 1 + rng.IntN(2)
				d, err := s.Take(ctx, stores.Hit{Key: "k", Limit: f.limit, Cost: cost})
				hangUp()
				if err != nil && !errors.Is(err, context.Canceled) { // he had left before he was heard
					t.Error(err)
				}
				f.mu.Lock()
				for range cost {
					if d.Allowed {
						f.admitted = append(f.admitted, time.Now())
					}
				}
				f.mu.Unlock()
			}
		})
	}
	all.Go(func() {
		for begun := time.Now(); time.Since(begun) < length; time.Sleep(time.Duration(rng.Int64N(int64(length / 15)))) {
			f.flap(rng)
		}
		f.heal()
	})
	all.Wait()
}

// back has each instance find the store again.
func (f *flappingFleet) back(t *testing.T) {
	n := 0
	for _, s := range f.instances {
		for begun := time.Now(); s.Stats().State != failover.Closed; time.Sleep(50 * time.Millisecond) {
			require.Less(t, time.Since(begun), time.Minute, "it does not come back")
			n++
			_, err := s.Take(t.Context(), stores.Hit{Key: fmt.Sprint("probe", n), Limit: f.limit})
			require.NoError(t, err)
		}
	}
}

// ends checks, while nobody hits, that what is counted under the key has an end.
func (f *flappingFleet) ends(t *testing.T) {
	if f.check == nil {
		return
	}
	_, err := f.instances[0].Take(t.Context(), stores.Hit{Key: "k", Limit: f.limit})
	require.NoError(t, err)
	f.check(t)
}

// settled sends many hits of one key in a window that has not begun, and returns how many
// were let through.
func (f *flappingFleet) settled(t *testing.T, key string, limit stores.Limit) int {
	var let atomic.Int32
	var all sync.WaitGroup
	for i := range 4 * limit.Quota {
		all.Go(func() {
			d, err := f.instances[i%len(f.instances)].Take(context.Background(), stores.Hit{Key: key, Limit: limit})
			if err != nil || d.Source == stores.Local {
				t.Errorf("%+v %v", d, err)
			}
			if d.Allowed {
				let.Add(1)
			}
		})
	}
	all.Wait()
	return int(let.Load())
}

func (f *flappingFleet) most() int {
	return f.limit.Quota + len(f.instances)*max(1, f.limit.Quota/len(f.instances))
}

// flapInRealTime checks what holds however slow the machine is.
func flapInRealTime(t *testing.T, e engine) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	limit := stores.FixedWindow(12, 2*time.Second)
	f := newFlappingFleet(t, e, limit, 20*time.Second)
	begun := time.Now()
	f.storm(t, rand.New(rand.NewPCG(seed, 1)), 6*time.Second, 15*time.Millisecond)
	windows := int(time.Since(begun)/limit.Window) + 1
	require.NotEmpty(t, f.admitted)
	require.LessOrEqual(t, len(f.admitted), windows*f.most())
	f.back(t)
	f.ends(t)
	long := stores.FixedWindow(12, time.Hour)
	require.Equal(t, long.Quota, f.settled(t, "fresh", long))
}

func inBubbles(t *testing.T, e func(t *testing.T) engine) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			f := newFlappingFleet(t, e(t), stores.FixedWindow(12, 10*time.Second), 0)
			f.storm(t, rand.New(rand.NewPCG(seed, round)), 45*time.Second, 50*time.Millisecond)
			require.NotEmpty(t, f.admitted)
			require.LessOrEqual(t, sim.Least(f.admitted, f.limit.Window-late), f.most(), "seed %d, round %d", seed, round)
			f.back(t)
			require.Equal(t, f.limit.Quota, f.settled(t, "fresh", f.limit), "seed %d, round %d", seed, round)
			time.Sleep(f.limit.Window)
			require.Equal(t, f.limit.Quota, f.settled(t, "k", f.limit), "seed %d, round %d: no debt outlives its window", seed, round)
			f.ends(t)
		})
	}
}
