package failover

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

func TestTripsOnFiveInARow(t *testing.T) {
	r := newRig(t, Config{})
	r.fake.failWith(errDown)
	for i := range 5 {
		require.Equal(t, Closed, r.Stats().State, "after %d failures", i)
		r.hit(t, "k", five)
	}
	require.Equal(t, Open, r.Stats().State)
	calls, _ := r.fake.count()
	for range 100 {
		d := r.hit(t, "other", five)
		require.Equal(t, stores.Local, d.Source)
		require.ErrorIs(t, d.Fault, stores.ErrUnavailable)
	}
	after, _ := r.fake.count()
	require.Equal(t, calls, after, "an open breaker spares the store, and the request the wait")
	require.Equal(t, 1, strings.Count(r.log.String(), "\n"), r.log.String())
}

func TestTripsOnHalfOfTwenty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.fake.set(func(f *fake) { f.fail = everySecond })
		for i := range 19 {
			r.hit(t, "k"+strconv.Itoa(i), five)
			require.Equal(t, Closed, r.Stats().State)
		}
		r.hit(t, "last", five)
		require.Equal(t, Open, r.Stats().State)
	})
}

func TestOldFailuresDoNotTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.fake.set(func(f *fake) { f.fail = everySecond })
		for i := range 200 {
			r.hit(t, "k"+strconv.Itoa(i), five)
			time.Sleep(600 * time.Millisecond) // 16 to 18 calls in ten seconds
		}
		require.Empty(t, r.changes)
	})
}

// A wrong token is told at once, and once.
func TestMisconfigurationIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		lines := func() int { return strings.Count(r.log.String(), "misconfigured") }
		r.fake.failWith(errToken)
		r.hit(t, "k", five)
		require.Equal(t, 1, lines())
		for range 200 {
			r.hit(t, "k", five)
			time.Sleep(10 * time.Second)
		}
		require.Equal(t, 1, lines())
		for range 100 { // well and badly by turns
			r.fake.failWith(nil)
			r.hit(t, "k", five)
			r.fake.failWith(errToken)
			r.hit(t, "k", five)
			time.Sleep(100 * time.Millisecond)
		}
		require.LessOrEqual(t, lines(), 2)
		require.NotContains(t, r.log.String(), "key=")
	})
}

// What an attacker can bring about at will must not open the breaker.
func TestWhatDoesNotTrip(t *testing.T) {
	tests := map[string]func(t *testing.T, r *rig){
		"refusals": func(t *testing.T, r *rig) {
			for range 100 {
				r.hit(t, "k", five)
			}
		},
		"one hot key": func(t *testing.T, r *rig) {
			r.fake.failWith(errOneKey)
			for i := range 100 {
				r.hit(t, "k"+strconv.Itoa(i), five)
			}
		},
		"dead connections": func(t *testing.T, r *rig) {
			r.fake.failWith(&fault.Error{Kind: stores.ErrUnavailable, Text: "cut", Stale: true})
			for i := range 100 {
				d := r.hit(t, "k"+strconv.Itoa(i), five)
				require.Equal(t, stores.Local, d.Source)
			}
		},
		"invalid hits": func(t *testing.T, r *rig) {
			for range 100 {
				_, err := r.Take(t.Context(), stores.Hit{Key: "\n", Limit: five})
				require.Error(t, err)
			}
		},
		"short deadlines": func(t *testing.T, r *rig) {
			r.fake.set(func(f *fake) { f.delay = 400 * time.Millisecond })
			for i := range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				_, err := r.Take(ctx, stores.Hit{Key: "k" + strconv.Itoa(i), Limit: five})
				require.NoError(t, err)
				cancel()
			}
		},
		"hang-ups": func(t *testing.T, r *rig) {
			r.fake.set(func(f *fake) { f.delay = 100 * time.Millisecond })
			for i := range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Millisecond, cancel)
				d, err := r.Take(ctx, stores.Hit{Key: "k" + strconv.Itoa(i), Limit: five})
				require.NoError(t, err)
				require.Equal(t, stores.Shared, d.Source)
			}
		},
	}
	for name, attack := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{})
				r.hit(t, "warm", five)
				attack(t, r)
				require.Empty(t, r.changes)
				r.fake.set(func(f *fake) { f.fail, f.delay = nil, 0 })
				require.Equal(t, stores.Shared, r.hit(t, "honest", five).Source)
			})
		})
	}
}

func TestOneHotKeyGoesLocalAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.fake.set(func(f *fake) {
			f.fail = func(_ int, _ context.Context, hit stores.Hit) error {
				if hit.Key == "hot" {
					return errOneKey
				}
				return nil
			}
		})
		passed := 0
		for range 50 {
			d := r.hit(t, "hot", five)
			require.Equal(t, stores.Local, d.Source)
			require.ErrorIs(t, d.Fault, stores.ErrHotKey)
			if d.Allowed {
				passed++
			}
		}
		require.Equal(t, 5, passed)
		calls, _ := r.fake.count()
		require.Equal(t, 1, calls, "a key that is throttled is left alone for a while")
		require.Equal(t, stores.Shared, r.hit(t, "other", five).Source)
		r.fake.failWith(nil)
		time.Sleep(openMost)
		require.Equal(t, stores.Shared, r.hit(t, "hot", five).Source)
	})
}

func TestOpenTimes(t *testing.T) {
	for name, test := range map[string]struct {
		err         error
		least, most time.Duration
	}{
		"unavailable":   {errDown, openLeast, openMost},
		"throttled":     {errBusyDB, openLeast, openMost},
		"no kind":       {errOdd, openLeast, openMost},
		"quota used up": {errQuota, openLasting, openLasting},
		"misconfigured": {errToken, openLasting, openLasting},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{})
				r.trip(t, test.err)
				c := r.changes[0]
				require.Equal(t, Closed, c.From)
				require.ErrorIs(t, c.Cause, test.err)
				require.GreaterOrEqual(t, c.For, test.least)
				require.LessOrEqual(t, c.For, test.most)
				before, _ := r.fake.count()
				time.Sleep(c.For - time.Millisecond)
				r.hit(t, "k", five)
				calls, _ := r.fake.count()
				require.Equal(t, before, calls)
				time.Sleep(time.Millisecond)
				r.hit(t, "k", five)
				calls, _ = r.fake.count()
				require.Equal(t, before+1, calls, "the first request behind the time probes")
			})
		})
	}
}

// The way back needs requests only, one at a time, and no timer.
func TestRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.trip(t, errDown)
		for range 10 {
			time.Sleep(openMost)
			require.Equal(t, stores.Local, r.hit(t, "k", five).Source, "a failed probe's request is decided locally")
		}
		require.Equal(t, uint64(10), r.Stats().Probes)
		r.fake.failWith(nil)
		time.Sleep(openMost)
		require.Equal(t, stores.Shared, r.hit(t, "k", five).Source)
		require.Equal(t, Closed, r.Stats().State)

		last := r.changes[len(r.changes)-1]
		require.Equal(t, HalfOpen, last.From)
		require.Equal(t, Closed, last.To)
		require.Equal(t, uint64(11), last.Local, "the one that opened it, and ten since")
		require.Equal(t, 11*openMost, time.Since(last.Since))
		require.Equal(t, 2, strings.Count(r.log.String(), "\n"), "one line down, one line back: %s", r.log)
		require.Contains(t, r.log.String(), "decided_locally=11")

		// It trips anew only on new failures.
		r.fake.failWith(errDown)
		r.hit(t, "k", five)
		require.Equal(t, Closed, r.Stats().State)
	})
}

func TestOneProbeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.trip(t, errDown)
		time.Sleep(openMost)
		r.fake.set(func(f *fake) { f.fail, f.delay, f.most = nil, 100*time.Millisecond, 0 })
		before, _ := r.fake.count()
		var wg sync.WaitGroup
		sources := make([]stores.Source, 100)
		for i := range sources {
			wg.Go(func() { sources[i] = r.hit(t, "k"+strconv.Itoa(i), five).Source })
		}
		wg.Wait()
		calls, _ := r.fake.count()
		require.Equal(t, before+1, calls)
		shared := 0
		for _, s := range sources {
			if s == stores.Shared {
				shared++
			}
		}
		require.Equal(t, 1, shared)
		require.Equal(t, []State{Open, HalfOpen, Closed}, r.states())
	})
}

// A probe that says nothing (its own key is hot, its caller left too little time)
// leaves the way to the next one.
func TestNeutralProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.trip(t, errDown)
		time.Sleep(openMost)
		r.fake.failWith(errOneKey)
		r.hit(t, "k", five)
		require.Equal(t, HalfOpen, r.Stats().State)
		r.fake.failWith(nil)
		require.Equal(t, stores.Shared, r.hit(t, "other", five).Source)
		require.Equal(t, Closed, r.Stats().State)
	})
}

// The failure of a call from before a change says nothing about the state behind it:
// here it comes while a probe is under way.
func TestLateFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Timeout: 20 * time.Second})
		r.fake.set(func(f *fake) {
			f.fail = func(_ int, _ context.Context, hit stores.Hit) error {
				switch hit.Key {
				case "slow":
					time.Sleep(7 * time.Second)
				case "probe":
					time.Sleep(5 * time.Second)
					return nil
				}
				return errDown
			}
		})
		done := make(chan stores.Decision)
		hit := func(key string) { done <- r.hit(t, key, five) }
		go hit("slow")
		synctest.Wait()
		for i := range 5 {
			r.hit(t, "k"+strconv.Itoa(i), five)
		}
		time.Sleep(openMost)
		go hit("probe")
		synctest.Wait()
		require.Equal(t, stores.Local, (<-done).Source, "the slow one, after seven seconds")
		require.Equal(t, HalfOpen, r.Stats().State)
		require.Equal(t, stores.Shared, (<-done).Source)
		require.Equal(t, []State{Open, HalfOpen, Closed}, r.states())
	})
}

func TestBreakerGivesOnePermitToProbe(t *testing.T) {
	var b breaker
	for range tripInARow {
		p, _, err := b.admit(1)
		require.NoError(t, err)
		b.settle(p, failed, errDown, 1)
	}
	_, _, err := b.admit(1)
	require.ErrorIs(t, err, errDown)
	now := 1 + int64(openMost)
	p, change, err := b.admit(now)
	require.NoError(t, err)
	require.Equal(t, HalfOpen, change.To)
	for range 3 {
		_, change, err = b.admit(now)
		require.ErrorIs(t, err, errDown)
		require.Nil(t, change)
	}
	b.settle(p, neutral, nil, now)
	p, _, err = b.admit(now)
	require.NoError(t, err)
	require.Equal(t, Open, b.settle(p, failed, errDown, now).To)
}

func TestOnChangeMayCallBack(t *testing.T) {
	var r *rig
	seen := 0
	r = newRig(t, Config{OnChange: func(Change) {
		seen++
		r.Stats()
		_, err := r.Take(context.Background(), stores.Hit{Key: "from the hook", Limit: five})
		require.NoError(t, err)
	}})
	r.trip(t, errDown)
	require.Equal(t, 1, seen)
}

func TestPanickingStore(t *testing.T) {
	r := newRig(t, Config{})
	r.fake.set(func(f *fake) {
		f.fail = func(int, context.Context, stores.Hit) error { panic(errors.New("secret")) }
	})
	for range 6 {
		d := r.hit(t, "k", five)
		require.ErrorIs(t, d.Fault, stores.ErrUnavailable)
		require.NotContains(t, d.Fault.Error(), "secret")
	}
	require.Empty(t, r.inFlight)
	require.Equal(t, Open, r.Stats().State)
}

// The outage of a black hole costs each request its deadline only until the breaker
// opens, and then a probe now and then.
func TestBlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Timeout: 200 * time.Millisecond})
		r.hit(t, "warm", five)
		r.fake.set(func(f *fake) { f.delay = time.Hour })
		waited := 0
		for i := range 3000 {
			start := time.Now()
			r.hit(t, "k"+strconv.Itoa(i%50), five)
			if time.Since(start) > 0 {
				waited++
			}
			time.Sleep(10 * time.Millisecond)
		}
		require.LessOrEqual(t, waited, tripInARow+31, "five, and a probe a second at most")
		require.GreaterOrEqual(t, waited, tripInARow+6)
		require.Equal(t, 1, strings.Count(r.log.String(), "\n"))
	})
}
