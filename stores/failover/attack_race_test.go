package failover

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// bad is a shared store on a bad line: it is late, it refuses, it loses questions and
// answers, and it keeps the books.
type bad struct {
	mem     *memory.Store
	mu      sync.Mutex
	rng     *rand.Rand
	down    bool
	failing float64        // share of the questions that fail while it is up
	asked   map[uint64]int // by hit
	counted map[uint64]bool
	paid    int
}

type hitID struct{}

// line is what happens to one question. It is called before and after the count.
func (b *bad) line(ctx context.Context) (before, after error) {
	b.mu.Lock()
	var delay time.Duration
	if b.rng.IntN(3) > 0 {
		delay = time.Duration(b.rng.IntN(300)) * time.Millisecond
	}
	if b.rng.IntN(20) == 0 {
		delay = time.Second // longer than a call has
	}
	fails, kind := b.down || b.rng.Float64() < b.failing, b.rng.IntN(4)
	if id, ok := ctx.Value(hitID{}).(uint64); ok {
		b.asked[id]++
	}
	b.mu.Unlock()
	early := delay / 2
	if kind == 0 {
		early = 0
	}
	select {
	case <-time.After(early):
	case <-ctx.Done():
		return ctx.Err(), nil
	}
	switch {
	case fails && kind < 2:
		return errDown, nil
	case fails && kind == 2:
		return &fault.Error{Kind: stores.ErrUnavailable, Text: "cut, and not counted"}, nil
	case fails:
		return nil, &fault.Error{Kind: stores.ErrUnavailable, Text: "cut, and counted"}
	}
	return nil, nil
}

func (b *bad) count(ctx context.Context, owed int, take func() (stores.Decision, error)) (stores.Decision, error) {
	before, after := b.line(ctx)
	if before != nil {
		return stores.Decision{}, before
	}
	d, err := take()
	if err != nil {
		return d, err
	}
	b.mu.Lock()
	b.paid += owed
	if id, ok := ctx.Value(hitID{}).(uint64); ok && d.Allowed {
		b.counted[id] = true
	}
	late := time.Duration(b.rng.IntN(200)) * time.Millisecond
	b.mu.Unlock()
	select {
	case <-time.After(late):
	case <-ctx.Done():
		return stores.Decision{}, ctx.Err()
	}
	return d, after
}

func (b *bad) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	return b.count(ctx, 0, func() (stores.Decision, error) { return b.mem.Take(context.Background(), hit) })
}

func (b *bad) TakeOwing(ctx context.Context, hit stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	return b.count(ctx, owed, func() (stores.Decision, error) {
		return b.mem.TakeOwing(context.Background(), hit, owed, until)
	})
}

func (b *bad) Refund(ctx context.Context, hit stores.Hit) error {
	_, err := b.count(ctx, 0, func() (stores.Decision, error) {
		return stores.Decision{}, b.mem.Refund(context.Background(), hit)
	})
	return err
}

// crowd hammers one key from several goroutines on several instances.
type crowd struct {
	*bad
	t         *testing.T
	instances []*Store
	limit     stores.Limit
	refunds   bool

	mu       sync.Mutex
	next     uint64
	admitted int
	given    int // back
	granted  int // admitted by memory, and certainly not counted by the shared store
	log      []admission
}

// admission is when so much was let through.
type admission struct {
	at   time.Time
	cost int
}

func newCrowd(t *testing.T, seed uint64, instances int, cfg Config) *crowd {
	mem, err := memory.New(memory.Config{})
	require.NoError(t, err)
	c := &crowd{t: t, bad: &bad{mem: mem, rng: rand.New(rand.NewPCG(seed, 5)), asked: map[uint64]int{}, counted: map[uint64]bool{}}}
	cfg.Instances, cfg.Logger = instances, slog.New(slog.NewTextHandler(io.Discard, nil))
	for range instances {
		s, err := New(c.bad, cfg)
		require.NoError(t, err)
		c.instances = append(c.instances, s)
	}
	return c
}

// hit is one request of one client, who may hang up.
func (c *crowd) hit(rng *rand.Rand) {
	c.mu.Lock()
	c.next++
	id := c.next
	c.mu.Unlock()
	s := c.instances[rng.IntN(len(c.instances))]
	h := stores.Hit{Key: "k", Limit: c.limit, Cost: 1 + rng.IntN(min(3, c.limit.Quota))}
	ctx, hangUp := context.WithCancel(context.WithValue(context.Background(), hitID{}, id))
	defer hangUp()
	if rng.IntN(3) == 0 {
		time.AfterFunc(time.Duration(rng.IntN(20)+1)*time.Millisecond, hangUp)
	}
	d, err := s.Take(ctx, h)
	if err != nil {
		c.t.Errorf("%v", err)
		return
	}
	c.bad.mu.Lock()
	asked, counted := c.asked[id], c.counted[id]
	c.bad.mu.Unlock()
	switch {
	case asked > 1:
		c.t.Errorf("asked %d times about one hit", asked)
	case d.Source == stores.Shared && counted != d.Allowed, d.Source == stores.Remembered && asked > 0:
		c.t.Errorf("%+v, but asked %d, counted %v", d, asked, counted)
	case d.Source == stores.Local && counted && fault.Definite(d.Fault):
		c.t.Errorf("counted by both: %v", d.Fault)
	case d.Source == stores.Remembered:
		if now, err := c.mem.Peek(context.Background(), h); err != nil || now.Allowed && !c.refunds {
			c.t.Errorf("remembered a refusal of what the store would allow: %+v %v", now, err)
		}
	}
	c.mu.Lock()
	if d.Allowed {
		c.admitted += h.Cost
		c.log = append(c.log, admission{time.Now(), h.Cost})
		if d.Source == stores.Local && (asked == 0 || fault.Definite(d.Fault)) {
			c.granted += h.Cost
		}
	}
	c.mu.Unlock()
	if d.Allowed && c.refunds && rng.IntN(3) == 0 {
		c.mu.Lock()
		c.given += h.Cost // if it fails it may still have been given back
		c.mu.Unlock()
		_ = s.RefundAt(context.Background(), h, d.Source)
	}
}

// run has many clients hit for a while, through outages.
func (c *crowd) run(clients, hits int, pause time.Duration) {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	rng := rand.New(rand.NewPCG(c.bad.rng.Uint64(), 1))
	seed := rng.Uint64()
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(1+rng.IntN(4000)) * time.Millisecond):
				c.bad.mu.Lock()
				c.down = !c.down
				c.bad.mu.Unlock()
			}
		}
	}()
	for client := range clients {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(client), seed))
			for range hits {
				c.hit(rng)
				time.Sleep(time.Duration(rng.Int64N(int64(pause))))
			}
		})
	}
	wg.Wait()
	close(stop)
	synctest.Wait()
}

// requireClean checks that nothing is left under way and that the books agree.
func (c *crowd) requireClean() {
	for _, s := range c.instances {
		require.Empty(c.t, s.inFlight)
		require.Empty(c.t, s.fallback.payments.last)
		hit := stores.Hit{Key: "k", Limit: c.limit}
		k := s.fallback.of(&hit)
		debts := 0
		if i := k.window.table.Find(k.window.hash); i >= 0 {
			r := k.window.table.At(i)
			require.Zero(c.t, r.pending)
			require.Zero(c.t, r.paying)
			if r.owed > 0 {
				debts = 1
			}
		}
		require.Equal(c.t, debts, s.Stats().Debts)
	}
	require.LessOrEqual(c.t, c.paid, c.granted, "a debt is paid once at most")
}

// One instance never lets more than the quota through in a window, whatever the line
// does to whichever of many parallel hits; several stay within what they may grant beside
// the shared store.
func TestCrowd(t *testing.T) {
	for _, instances := range []int{1, 3} {
		for _, refunds := range []bool{false, true} {
			t.Run(fmt.Sprintf("instances %d refunds %v", instances, refunds), func(t *testing.T) {
				for seed := range uint64(40) {
					synctest.Test(t, func(t *testing.T) {
						c := newCrowd(t, seed, instances, Config{MaxInFlight: 1 + int(seed%5)*4})
						c.limit = stores.FixedWindow(1+int(seed)%40*20, time.Hour)
						c.refunds = refunds
						c.failing = float64(seed%4) / 10
						c.run(20, 40, 2*time.Second)
						most := c.limit.Quota
						if instances > 1 {
							most += instances * max(1, most/instances)
						}
						require.LessOrEqual(t, c.admitted-c.given, most, "seed %d %s: %d admitted, %d of them by memory, %d given back", seed, c.limit, c.admitted, c.granted, c.given)
						c.requireClean()
						c.down, c.failing = false, 0
						time.Sleep(time.Hour)
						before := c.admitted
						for range 20 {
							c.hit(c.bad.rng)
							time.Sleep(time.Second)
						}
						require.Greater(t, c.admitted, before, "shut out for longer than a window")
					})
				}
			})
		}
	}
}

// densest returns the most that was let through in any interval of this length.
func (c *crowd) densest(length time.Duration) int {
	most, sum, from := 0, 0, 0
	for _, a := range c.log {
		for sum += a.cost; a.at.Sub(c.log[from].at) >= length; from++ {
			sum -= c.log[from].cost
		}
		most = max(most, sum)
	}
	return most
}

// Windows end while hits and payments are on their way. A fixed window lets up to twice
// the quota through in an interval of its length, and no line makes that more. What
// was let through is seen later than it was counted, and of a window's end one knows no
// more than the exchange allows: each by a call's time at most.
func TestCrowdOverManyWindows(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, seed, 1, Config{})
			c.limit = stores.FixedWindow(1+int(seed)*6, 20*time.Second)
			c.failing = float64(seed%4) / 10
			c.run(20, 120, 2*time.Second)
			require.LessOrEqual(t, c.densest(c.limit.Window-2*freshLimit), 2*c.limit.Quota, "seed %d %s", seed, c.limit)
			c.requireClean()
		})
	}
}
