package sim

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// The traffic: one attacker who hammers one key from everywhere, and visitors with keys
// of their own, who send a few requests each.
const (
	attackPause   = 20 * time.Millisecond // between two of the attacker's hits, on average
	visitorPause  = time.Second           // between two visitors
	visitorHits   = 3
	visitorThinks = 2 * time.Second
)

// Limit is what both meet.
var Limit = stores.FixedWindow(20, time.Minute)

// Result is what came of one simulation.
type Result struct {
	Start    time.Time
	Attack   []time.Time   // when the attacker was let through
	Local    [][]time.Time // of that, what each instance decided without the shared store
	Hits     int           // of the attacker
	Requests int           // of visitors
	Refused  int           // of visitors
	Calls    int           // to the shared store
	Errors   int
}

// Mean is what the attacker got in a window, on average, in quotas.
func (r Result) Mean() float64 {
	return float64(len(r.Attack)) / float64(Limit.Quota) / (float64(Length) / float64(Limit.Window))
}

// Worst is what he got in one window at most, in hits, of windows of this length.
func (r Result) Worst(window time.Duration) int { return Least(r.Attack, window) }

// Run simulates a fleet. It has to be called in a testing/synctest bubble.
func Run(s Scenario, c Contender, instances int, seed uint64) (Result, error) {
	w := &world{engine: newEngine(s, seed), result: Result{Start: time.Now(), Local: make([][]time.Time, instances)}}
	for i := range instances {
		var skew time.Duration
		if instances > 1 {
			skew = -s.Skew + 2*s.Skew*time.Duration(i)/time.Duration(instances-1)
		}
		store, err := c.open(&line{w.engine, skew}, instances)
		if err != nil {
			return Result{}, err
		}
		w.fleet = append(w.fleet, store)
	}
	var all sync.WaitGroup
	all.Go(func() { w.attack(rand.New(rand.NewPCG(seed, 2)), &all) })
	all.Go(func() { w.visit(rand.New(rand.NewPCG(seed, 3)), &all) })
	all.Wait()
	w.result.Calls = w.engine.calls
	return w.result, nil
}

type world struct {
	engine *engine
	fleet  []stores.Store

	mu     sync.Mutex
	result Result
}

func (w *world) attack(rng *rand.Rand, all *sync.WaitGroup) {
	for time.Since(w.engine.start) < Length {
		i := rng.IntN(len(w.fleet))
		all.Go(func() {
			d, err := w.fleet[i].Take(context.Background(), stores.Hit{Key: "attacker", Limit: Limit})
			w.mu.Lock()
			defer w.mu.Unlock()
			w.result.Hits++
			if err != nil {
				w.result.Errors++
			}
			if d.Allowed {
				w.result.Attack = append(w.result.Attack, time.Now())
				if d.Source == stores.Local {
					w.result.Local[i] = append(w.result.Local[i], time.Now())
				}
			}
		})
		time.Sleep(time.Duration(rng.Int64N(int64(2 * attackPause))))
	}
}

func (w *world) visit(rng *rand.Rand, all *sync.WaitGroup) {
	for n := 0; time.Since(w.engine.start) < Length; n++ {
		var route [visitorHits]int
		for k := range route {
			route[k] = rng.IntN(len(w.fleet))
		}
		all.Go(func() {
			for _, i := range route {
				d, err := w.fleet[i].Take(context.Background(), stores.Hit{Key: "visitor" + strconv.Itoa(n), Limit: Limit})
				w.mu.Lock()
				w.result.Requests++
				if err != nil {
					w.result.Errors++
				}
				if !d.Allowed {
					w.result.Refused++
				}
				w.mu.Unlock()
				time.Sleep(visitorThinks)
			}
		})
		time.Sleep(time.Duration(rng.Int64N(int64(2 * visitorPause))))
	}
}
