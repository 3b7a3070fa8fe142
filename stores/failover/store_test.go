package failover

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

var (
	_ stores.Store     = (*Store)(nil)
	_ stores.Batcher   = (*Store)(nil)
	_ stores.Peeker    = (*Store)(nil)
	_ stores.Resetter  = (*Store)(nil)
	_ stores.Refunder  = (*Store)(nil)
	_ stores.Debtor    = (*Store)(nil)
	_ stores.Supporter = (*Store)(nil)
)

func TestNew(t *testing.T) {
	mem, err := memory.New(memory.Config{})
	require.NoError(t, err)
	inner, err := New(newFake(t), Config{})
	require.NoError(t, err)
	for name, shared := range map[string]stores.Store{"nil": nil, "memory": mem, "failover": inner} {
		_, err := New(shared, Config{})
		require.ErrorIs(t, err, stores.ErrInvalid, name)
	}
	for name, cfg := range map[string]Config{
		"timeout":   {Timeout: -1},
		"timeout 2": {Timeout: 2 * time.Hour},
		"reserve":   {Reserve: -1},
		"keys":      {MaxKeys: -1},
		"instances": {Instances: -1},
		"in flight": {MaxInFlight: -1},
	} {
		_, err := New(newFake(t), cfg)
		require.ErrorIs(t, err, stores.ErrInvalid, name)
	}
	for _, text := range []string{"0", "-3", "many", "2.5"} {
		t.Setenv(instancesVariable, text)
		_, err := New(newFake(t), Config{})
		require.ErrorIs(t, err, stores.ErrInvalid, text)
		require.ErrorContains(t, err, instancesVariable)
	}
}

func TestNilAndZeroStore(t *testing.T) {
	hit := stores.Hit{Key: "k", Limit: five}
	for _, s := range []*Store{nil, {}} {
		_, err := s.Take(t.Context(), hit)
		require.ErrorIs(t, err, stores.ErrMisconfigured)
		_, err = s.TakeAll(t.Context(), []stores.Hit{hit}, make([]stores.Decision, 1))
		require.ErrorIs(t, err, stores.ErrMisconfigured)
		_, err = s.Peek(t.Context(), hit)
		require.ErrorIs(t, err, stores.ErrMisconfigured)
		require.ErrorIs(t, s.Reset(t.Context(), hit), stores.ErrMisconfigured)
		require.ErrorIs(t, s.Supports(five), stores.ErrMisconfigured)
		require.Zero(t, s.Stats())
	}
}

func TestSharedDecides(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 7 {
		d := r.hit(t, "key", five)
		require.Equal(t, i < 5, d.Allowed)
		require.NoError(t, d.Fault)
		if i < 6 {
			require.Equal(t, stores.Shared, d.Source)
		} else {
			require.Equal(t, stores.Remembered, d.Source, "a second refusal needs no call")
		}
	}
	stats := r.Stats()
	require.Equal(t, uint64(6), stats.Shared)
	require.Equal(t, uint64(1), stats.Remembered)
	require.Zero(t, stats.Local)
}

// Whatever goes wrong, one path decides, and the shared store is asked once at most.
func TestOnePathUnderEveryFault(t *testing.T) {
	faults := map[string]func(f *fake){
		"healthy":      func(f *fake) {},
		"down":         func(f *fake) { f.fail = fails(errDown) },
		"quota":        func(f *fake) { f.fail = fails(errQuota) },
		"throttled":    func(f *fake) { f.fail = fails(errBusyDB) },
		"token":        func(f *fake) { f.fail = fails(errToken) },
		"hot key":      func(f *fake) { f.fail = fails(errOneKey) },
		"no kind":      func(f *fake) { f.fail = fails(errOdd) },
		"canceled":     func(f *fake) { f.fail = fails(context.Canceled) },
		"hang":         func(f *fake) { f.delay = time.Hour },
		"slow":         func(f *fake) { f.delay = 499 * time.Millisecond },
		"answer lost":  func(f *fake) { f.lose = errDown },
		"panic":        func(f *fake) { f.fail = func(int, context.Context, stores.Hit) error { panic("secret") } },
		"every second": func(f *fake) { f.fail = everySecond },
	}
	for name, arrange := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{})
				arrange(r.fake)
				var shared, local, remembered, passed int
				for i := range 40 {
					callsBefore, appliedBefore := r.fake.count()
					before := r.Stats()
					d := r.hit(t, "offender", five)
					calls, applied := r.fake.count()
					after := r.Stats()
					require.LessOrEqual(t, calls-callsBefore, 1)
					require.Equal(t, uint64(1), after.Shared+after.Local+after.Remembered+after.None-
						before.Shared-before.Local-before.Remembered-before.None, "hit %d", i)
					switch d.Source {
					case stores.Shared:
						shared++
						require.Equal(t, 1, applied-appliedBefore)
						require.NoError(t, d.Fault)
					case stores.Local:
						local++
						require.Error(t, d.Fault)
					case stores.Remembered:
						remembered++
						require.Equal(t, callsBefore, calls)
					default:
						t.Fatalf("source %s", d.Source)
					}
					if d.Allowed {
						passed++
					}
				}
				require.LessOrEqual(t, passed, 5, "the two paths together")
				require.Equal(t, 40, shared+local+remembered)
				if name == "healthy" || name == "slow" {
					require.Zero(t, local)
				}
				if local == 40 || shared+remembered == 40 {
					require.Equal(t, 5, passed)
				}
				require.NotContains(t, r.log.String(), "secret")
			})
		})
	}
}

func fails(err error) func(int, context.Context, stores.Hit) error {
	return func(int, context.Context, stores.Hit) error { return err }
}

func everySecond(n int, _ context.Context, _ stores.Hit) error {
	if n%2 == 0 {
		return errDown
	}
	return nil
}

// An outage limits the offender and serves everybody else.
func TestOutage(t *testing.T) {
	r := newRig(t, Config{})
	r.fake.failWith(errDown)
	passed := 0
	for range 20 {
		if r.hit(t, "offender", five).Allowed {
			passed++
		}
	}
	require.Equal(t, 5, passed)
	d := r.hit(t, "honest", five)
	require.True(t, d.Allowed)
	require.Equal(t, 4, d.Remaining)
	require.ErrorIs(t, d.Fault, stores.ErrUnavailable)
}

func TestOutageManners(t *testing.T) {
	r := newRig(t, Config{})
	r.fake.failWith(errQuota)
	for i := range 20 {
		d, err := r.Take(t.Context(), stores.Hit{Key: "k", Limit: five, Outage: stores.OutageAllow})
		require.NoError(t, err)
		require.True(t, d.Allowed)
		require.Equal(t, stores.None, d.Source)
		require.ErrorIs(t, d.Fault, stores.ErrThrottled)

		d, err = r.Take(t.Context(), stores.Hit{Key: "k", Limit: five, Outage: stores.OutageRefuse})
		require.NoError(t, err)
		require.False(t, d.Allowed, i)
		require.Equal(t, stores.None, d.Source)
		require.GreaterOrEqual(t, d.RetryAfter, time.Second)
		require.LessOrEqual(t, d.RetryAfter, openLasting)
	}
	require.Zero(t, r.Stats().Local)
	require.Equal(t, uint64(40), r.Stats().None)
}

func TestInstancesShareTheQuota(t *testing.T) {
	r := newRig(t, Config{Instances: 3})
	r.fake.failWith(errDown)
	for quota, want := range map[int]int{2: 1, 3: 1, 10: 3, 30: 10} {
		limit, passed := stores.FixedWindow(quota, time.Minute), 0
		for range 40 {
			if r.hit(t, "k"+strconv.Itoa(quota), limit).Allowed {
				passed++
			}
		}
		require.Equal(t, want, passed, "quota %d", quota)
	}
	d, err := r.Take(t.Context(), stores.Hit{Key: "costly", Limit: stores.FixedWindow(10, time.Minute), Cost: 5})
	require.NoError(t, err)
	require.False(t, d.Allowed)
	require.GreaterOrEqual(t, d.RetryAfter, time.Second, "it can pass when the shared store is back")
}

func TestFinalErrorsAreReturned(t *testing.T) {
	r := newRig(t, Config{})
	for _, err := range []error{
		errors.Join(errors.New("x"), errors.ErrUnsupported),
		errors.Join(errors.New("x"), stores.ErrInvalid),
	} {
		r.fake.failWith(err)
		for range 30 {
			_, got := r.Take(t.Context(), stores.Hit{Key: "k", Limit: five})
			require.ErrorIs(t, got, err)
		}
	}
	require.Equal(t, Closed, r.Stats().State)
	require.Zero(t, r.Stats().Local)
	_, err := r.Take(t.Context(), stores.Hit{Key: "k"})
	require.ErrorIs(t, err, stores.ErrInvalid)
}

func TestCostAboveQuotaAsksNobody(t *testing.T) {
	r := newRig(t, Config{})
	d, err := r.Take(t.Context(), stores.Hit{Key: "k", Limit: five, Cost: 6})
	require.NoError(t, err)
	require.False(t, d.Allowed)
	require.Zero(t, d.RetryAfter)
	calls, _ := r.fake.count()
	require.Zero(t, calls)
}

// A client that hangs up cancels nothing: the hit is counted and its outcome used.
func TestHangUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.fake.set(func(f *fake) { f.delay = 20 * time.Millisecond })
		for range 64 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			go func() {
				time.Sleep(3 * time.Millisecond)
				cancel()
			}()
			d, err := r.Take(ctx, stores.Hit{Key: "k", Limit: stores.FixedWindow(100, time.Hour)})
			require.NoError(t, err)
			require.Equal(t, stores.Shared, d.Source)
			require.ErrorIs(t, ctx.Err(), context.Canceled)
		}
		_, applied := r.fake.count()
		require.Equal(t, 64, applied)
		require.Zero(t, r.Stats().Local)
		require.Empty(t, r.changes)
	})
}

func TestDoneContextCountsNothing(t *testing.T) {
	r := newRig(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hit := stores.Hit{Key: "k", Limit: five}
	_, err := r.Take(ctx, hit)
	require.ErrorIs(t, err, context.Canceled)
	_, err = r.TakeAll(ctx, []stores.Hit{hit, hit}, make([]stores.Decision, 2))
	require.ErrorIs(t, err, context.Canceled)
	calls, _ := r.fake.count()
	require.Zero(t, calls)
	require.Zero(t, r.Stats().Memory.Keys)
}

// The deadline of a call, by what the caller's context leaves.
func TestDeadline(t *testing.T) {
	tests := []struct {
		name   string
		caller time.Duration // 0: none
		warm   bool
		want   time.Duration // 0: no call
	}{
		{"first call", 0, false, 2 * time.Second},
		{"warm", 0, true, 500 * time.Millisecond},
		{"long", time.Minute, true, 500 * time.Millisecond},
		{"short", 300 * time.Millisecond, true, 200 * time.Millisecond},
		{"first and short", time.Second, false, 900 * time.Millisecond},
		{"too short", 149 * time.Millisecond, true, 0},
		{"less than the reserve", 10 * time.Millisecond, false, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{})
				if test.warm {
					r.hit(t, "warm", five)
				}
				r.fake.set(func(f *fake) { f.delay = time.Hour })
				ctx := t.Context()
				if test.caller > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.caller)
					defer cancel()
				}
				before, _ := r.fake.count()
				start := time.Now()
				d, err := r.Take(ctx, stores.Hit{Key: "k", Limit: five})
				require.NoError(t, err)
				require.Equal(t, stores.Local, d.Source)
				require.ErrorIs(t, d.Fault, stores.ErrUnavailable)
				require.Equal(t, test.want, time.Since(start))
				calls, _ := r.fake.count()
				require.Equal(t, test.want > 0, calls > before)
			})
		})
	}
}

// After five idle seconds connections are closed: the next call may dial. In an
// outage nobody gets the longer time.
func TestDeadlineAfterIdleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		took := func() time.Duration {
			start := time.Now()
			r.hit(t, "k", stores.FixedWindow(1000, time.Hour))
			return time.Since(start)
		}
		took()
		time.Sleep(idleAfter)
		r.fake.set(func(f *fake) { f.delay = time.Hour })
		require.Equal(t, 2*time.Second, took())
		require.Equal(t, 500*time.Millisecond, took())
		time.Sleep(time.Minute)
		require.Equal(t, 500*time.Millisecond, took())
	})
}

func TestCallsInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{MaxInFlight: 4})
		r.hit(t, "warm", five)
		r.fake.set(func(f *fake) { f.delay = 200 * time.Millisecond })
		var shared, local atomic.Int64
		var wg sync.WaitGroup
		start := time.Now()
		for i := range 40 {
			wg.Go(func() {
				switch d := r.hit(t, "k"+strconv.Itoa(i), five); d.Source {
				case stores.Shared:
					shared.Add(1)
				case stores.Local:
					local.Add(1)
					if !errors.Is(d.Fault, stores.ErrUnavailable) {
						t.Errorf("fault %v", d.Fault)
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, 500*time.Millisecond, time.Since(start))
		require.Equal(t, 4, r.fake.most)
		require.Equal(t, int64(40), shared.Load()+local.Load())
		require.GreaterOrEqual(t, shared.Load(), int64(8))
		require.Equal(t, Closed, r.Stats().State, "a crowd says nothing about the store")
	})
}

func TestParallelHitsOnOneKey(t *testing.T) {
	for name, err := range map[string]error{"healthy": nil, "down": errDown} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				r := newRig(t, Config{})
				r.fake.failWith(err)
				var passed atomic.Int64
				var wg sync.WaitGroup
				for range 100 {
					wg.Go(func() {
						if r.hit(t, "k", five).Allowed {
							passed.Add(1)
						}
					})
				}
				wg.Wait()
				require.Equal(t, int64(5), passed.Load())
			}
		})
	}
}
