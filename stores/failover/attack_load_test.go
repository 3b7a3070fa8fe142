package failover

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// A shared store that accepts and never answers, and a hundred requests a second
// for half a minute. Once the breaker has opened, 99 of 100 wait for nothing; what is
// under way stays flat, and the log says it once.
func TestRequestsInABlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.hit(t, "warm", five)
		r.fake.set(func(f *fake) { f.delay = time.Hour })
		var mu sync.Mutex
		var waits []time.Duration
		var underWay atomic.Int64
		most := int64(0)
		for i := range 3000 {
			underWay.Add(1)
			go func() {
				defer underWay.Add(-1)
				open := r.Stats().State != Closed
				start := time.Now()
				r.hit(t, "k"+strconv.Itoa(i), five)
				if open {
					mu.Lock()
					waits = append(waits, time.Since(start))
					mu.Unlock()
				}
			}()
			time.Sleep(10 * time.Millisecond)
			if r.Stats().State != Closed {
				most = max(most, underWay.Load())
			}
		}
		time.Sleep(freshLimit)
		require.Zero(t, underWay.Load())
		slices.Sort(waits)
		require.Greater(t, len(waits), 2900)
		require.Zero(t, waits[len(waits)*99/100], "p99")
		require.Less(t, most, int64(60), "those that came before it opened, and a probe")
		require.Equal(t, 1, strings.Count(r.log.String(), "\n"))
		calls, _ := r.fake.count()
		require.Less(t, calls, 100)
	})
}

// 64 clients at a time hang up after three milliseconds, over and over. An honest one
// beside them waits for the store's twenty and no longer, and no connection is cut.
func TestHangUpsBesideAnHonestClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.hit(t, "warm", five)
		r.fake.set(func(f *fake) {
			f.delay = 20 * time.Millisecond
		})
		wide := stores.FixedWindow(1_000_000, time.Hour)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					ctx, hangUp := context.WithCancel(context.Background())
					time.AfterFunc(3*time.Millisecond, hangUp)
					d, err := r.Take(ctx, stores.Hit{Key: "hostile", Limit: wide})
					if err != nil || d.Source != stores.Shared {
						t.Errorf("%+v %v", d, err)
					}
				}
			})
		}
		for range 100 {
			start := time.Now()
			require.Equal(t, stores.Shared, r.hit(t, "honest", wide).Source)
			require.Equal(t, 20*time.Millisecond, time.Since(start))
		}
		close(stop)
		wg.Wait()
		calls, applied := r.fake.count()
		require.Equal(t, calls, applied, "each call that was begun was counted")
		require.Empty(t, r.changes)
	})
}

// A store that never answers one call, whatever its context says, holds up that one
// request. If it is the probe, the others are decided here at once meanwhile.
func TestProbeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.trip(t, errDown)
		time.Sleep(openMost)
		thawed := make(chan struct{})
		r.fake.set(func(f *fake) {
			f.fail = func(_ int, _ context.Context, hit stores.Hit) error {
				if hit.Key == "probe" {
					<-thawed
				}
				return errDown
			}
		})
		done := make(chan stores.Decision)
		go func() { done <- r.hit(t, "probe", five) }()
		synctest.Wait()
		for i := range 600 {
			start := time.Now()
			require.Equal(t, i < 5, r.hit(t, "k", stores.FixedWindow(5, time.Hour)).Allowed)
			require.Zero(t, time.Since(start))
			time.Sleep(time.Second)
		}
		close(thawed)
		require.Equal(t, stores.Local, (<-done).Source)
		r.fake.failWith(nil)
		time.Sleep(openMost)
		r.hit(t, "other", five)
		require.Equal(t, Closed, r.Stats().State)
	})
}
