package failover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// A key that had used four of five when the shared store died has one left, until
// its window ends.
func TestWarmFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		for range 4 {
			r.hit(t, "k", five)
		}
		time.Sleep(20 * time.Second)
		r.fake.failWith(errDown)
		d := r.hit(t, "k", five)
		require.True(t, d.Allowed)
		require.Equal(t, stores.Local, d.Source)
		require.Zero(t, d.Remaining)
		require.Equal(t, 40*time.Second, d.ResetAfter, "the window is the shared store's")
		d = r.hit(t, "k", five)
		require.False(t, d.Allowed)
		require.Equal(t, 40*time.Second, d.RetryAfter)
		time.Sleep(d.RetryAfter)
		require.True(t, r.hit(t, "k", five).Allowed)
	})
}

// What other instances used is known as well, from the last answer.
func TestWarmFallbackKnowsOfOthers(t *testing.T) {
	r := newRig(t, Config{})
	r.hit(t, "k", five)
	for range 2 {
		_, err := r.fake.mem.Take(t.Context(), stores.Hit{Key: "k", Limit: five})
		require.NoError(t, err)
	}
	r.hit(t, "k", five)
	r.fake.failWith(errDown)
	require.True(t, r.hit(t, "k", five).Allowed)
	require.False(t, r.hit(t, "k", five).Allowed)
}

func TestResetElsewhereIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		for range 5 {
			r.hit(t, "k", five)
		}
		time.Sleep(30 * time.Second)
		require.NoError(t, r.fake.mem.Reset(t.Context(), stores.Hit{Key: "k", Limit: five}))
		require.Equal(t, 4, r.hit(t, "k", five).Remaining)
		r.fake.failWith(errDown)
		require.Equal(t, 3, r.hit(t, "k", five).Remaining)
	})
}

// What was let through without the shared store is told to it with the next hit,
// once.
func TestDebtIsPaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		ten := stores.FixedWindow(10, time.Minute)
		r.hit(t, "k", ten)
		r.trip(t, errDown)
		for range 3 {
			r.hit(t, "k", ten)
		}
		require.Equal(t, 1+tripInARow, r.Stats().Debts)
		for range 4 { // probes that fail: nothing is paid, nothing lost
			time.Sleep(openMost)
			r.hit(t, "other", ten)
		}
		r.fake.failWith(nil)
		time.Sleep(openMost)
		d := r.hit(t, "k", ten)
		require.Equal(t, stores.Shared, d.Source)
		require.Equal(t, 10-1-3-1, d.Remaining)
		require.Equal(t, 3, r.fake.paid)
		d = r.hit(t, "k", ten)
		require.Equal(t, 4, d.Remaining)
		require.Equal(t, 3, r.fake.paid)
		require.Equal(t, time.Minute-5*openMost, d.ResetAfter, "no payment moves a window's end")
	})
}

func TestDebtEndsWithItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		limit := stores.FixedWindow(5, 10*time.Second)
		r.trip(t, errDown)
		for range 5 {
			r.hit(t, "k", limit)
		}
		r.fake.failWith(nil)
		time.Sleep(10 * time.Second)
		require.Equal(t, 4, r.hit(t, "k", limit).Remaining)
		require.Zero(t, r.fake.paid)
		require.Equal(t, tripInARow, r.Stats().Debts, "those of the other keys, whose window is a minute")
	})
}

// A definite failure puts a debt back; an uncertain one may have paid it, and then it
// must not be paid twice: this instance itself sees to it that the quota holds.
func TestDebtAfterAFailedPayment(t *testing.T) {
	lost := &fault.Error{Kind: stores.ErrUnavailable, Text: "cut"}
	tests := map[string]struct {
		err       error
		paidLater int
	}{
		"definite":  {errDown, 5},
		"uncertain": {lost, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{})
				r.trip(t, errDown)
				for range 5 {
					require.True(t, r.hit(t, "k", five).Allowed)
				}
				r.fake.failWith(test.err)
				time.Sleep(openMost)
				require.False(t, r.hit(t, "k", five).Allowed)
				r.fake.failWith(nil)
				time.Sleep(openMost)
				require.Equal(t, stores.Shared, r.hit(t, "bystander", five).Source)
				require.False(t, r.hit(t, "k", five).Allowed)
				require.Equal(t, test.paidLater, r.fake.paid)
				time.Sleep(time.Minute)
				require.Equal(t, stores.Shared, r.hit(t, "k", five).Source)
			})
		})
	}
}

// While a payment is on its way no other hit of the key overtakes it: it waits.
func TestNothingOvertakesAPayment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.trip(t, errDown)
		for range 3 {
			r.hit(t, "k", five)
		}
		r.fake.failWith(nil)
		time.Sleep(openMost)
		r.hit(t, "bystander", five)
		r.fake.set(func(f *fake) { f.delay = 100 * time.Millisecond })
		done := make(chan stores.Decision)
		start := time.Now()
		for range 10 {
			go func() { done <- r.hit(t, "k", five) }()
		}
		allowed := 3
		for range 10 {
			d := <-done
			require.Equal(t, stores.Shared, d.Source)
			if d.Allowed {
				allowed++
			}
		}
		require.Equal(t, 200*time.Millisecond, time.Since(start), "the payment first, then all others at once")
		require.Equal(t, 5, allowed)
	})
}

// A payment that hangs holds up its key for the time of a call and no longer.
func TestPaymentHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.trip(t, errDown)
		for range 3 {
			r.hit(t, "k", five)
		}
		r.fake.failWith(nil)
		time.Sleep(openMost)
		r.hit(t, "bystander", five)
		r.fake.set(func(f *fake) { f.delay = time.Hour })
		done := make(chan stores.Decision)
		start := time.Now()
		for range 20 {
			go func() { done <- r.hit(t, "k", five) }()
		}
		allowed := 0
		for range 20 {
			d := <-done
			require.Equal(t, stores.Local, d.Source)
			if d.Allowed {
				allowed++
			}
		}
		require.Equal(t, 500*time.Millisecond, time.Since(start))
		require.Equal(t, 2, allowed)
		require.Empty(t, r.fallback.payments.last)
		require.Empty(t, r.inFlight)
	})
}

// An answer from before a debt does not make the fallback forget the debt.
func TestAnswersAndDebtsAddUp(t *testing.T) {
	f := newFallback(0, 1)
	hit := stores.Hit{Key: "k", Limit: five}
	k := f.of(&hit)
	d, _, err := k.send(1, 1)
	require.NoError(t, err)
	require.True(t, k.take(2, true).Allowed) // another hit, which failed definitely
	told := stores.Decision{Allowed: true, Remaining: 2, ResetAfter: time.Minute}
	k.answered(d, &told, true, false, 3, 2)
	require.Equal(t, 1, k.peek(4).Remaining, "three as told, and one that is owed")
}

// A window that this instance opened by itself in an outage ends before the one that
// the shared store opens at its next hit. That does not make it a window of the past.
func TestOwnWindowMeetsTheSharedOne(t *testing.T) {
	f := newFallback(0, 1)
	hit := stores.Hit{Key: "k", Limit: five}
	k := f.of(&hit)
	require.True(t, k.take(1, false).Allowed) // its answer was lost
	later := int64(10 * time.Second)
	d, _, err := k.send(later, later)
	require.NoError(t, err)
	k.answered(d, &stores.Decision{Allowed: true, Remaining: 4, ResetAfter: time.Minute}, true, false, later, 0)
	require.Equal(t, 3, k.peek(later).Remaining, "one of before, and this one")
}

// An answer whose window's end is unsure tells what is used, and no end.
func TestUncertainAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.hit(t, "k", five)
		time.Sleep(20 * time.Second)
		r.fake.set(func(f *fake) { f.unsure = true })
		r.hit(t, "k", five)
		r.fake.failWith(errDown)
		d := r.hit(t, "k", five)
		require.Equal(t, 2, d.Remaining)
		require.Equal(t, 40*time.Second, d.ResetAfter)
	})
}

// What is on its way when a window ends is still on its way in the next one.
func TestPendingOutlivesItsWindow(t *testing.T) {
	f := newFallback(0, 1)
	hit := stores.Hit{Key: "k", Limit: stores.FixedWindow(5, time.Second)}
	k := f.of(&hit)
	for range 3 {
		_, _, err := k.send(1, 1)
		require.NoError(t, err)
	}
	later := 1 + int64(2*time.Second)
	allowed := 0
	for range 5 {
		if k.take(later, true).Allowed {
			allowed++
		}
	}
	require.Equal(t, 2, allowed)
}

// Without a Debtor the shared store can't be told; the instance itself still keeps
// to the quota.
func TestNoDebtor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s, err := New(bare{f}, Config{})
		require.NoError(t, err)
		allowed := 0
		for second := range 12 {
			if second%2 == 1 {
				f.failWith(errDown)
			} else {
				f.failWith(nil)
			}
			for range 20 {
				d, err := s.Take(t.Context(), stores.Hit{Key: "k", Limit: stores.FixedWindow(50, time.Minute)})
				require.NoError(t, err)
				if d.Allowed {
					allowed++
				}
			}
			time.Sleep(time.Second)
		}
		require.Equal(t, 50, allowed)
		require.Zero(t, s.Stats().Debts)
	})
}

// world is a shared store that is up and down by a schedule, and loses answers.
type world struct {
	*memory.Store
	up      func(time.Time) bool
	applied float64 // share of the lost hits that were counted nevertheless
	cut     float64 // share of the failures of which nobody knows whether they were counted
	rng     *rand.Rand
	paid    map[string]int         // what was owed and is told
	dropped map[string][]time.Time // hits of which nobody knew that they were not counted
}

func (w *world) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	return w.ask(hit.Key, func() (stores.Decision, error) { return w.Store.Take(ctx, hit) })
}

func (w *world) TakeOwing(ctx context.Context, hit stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	return w.ask(hit.Key, func() (stores.Decision, error) {
		if w.paid != nil {
			w.paid[hit.Key] += owed
		}
		return w.Store.TakeOwing(ctx, hit, owed, until)
	})
}

func (w *world) ask(key string, question func() (stores.Decision, error)) (stores.Decision, error) {
	if w.up(time.Now()) {
		return question()
	}
	if w.rng.Float64() >= w.cut {
		return stores.Decision{}, errDown
	}
	if w.rng.Float64() < w.applied {
		_, _ = question()
	} else if w.dropped != nil {
		w.dropped[key] = append(w.dropped[key], time.Now())
	}
	return stores.Decision{}, &fault.Error{Kind: stores.ErrUnavailable, Text: "cut"}
}

// The shared store flaps every second for 300 s while one key gets 50 hits a second.
// The phase decides where in a second of its work a window opens: with the hits so
// close, the quota is used up within a tenth of one.
func TestFlapping(t *testing.T) {
	for _, phase := range []time.Duration{0, 960 * time.Millisecond, time.Second, 1960 * time.Millisecond} {
		for _, cut := range []float64{0, 0.5, 1} {
			for _, applied := range []float64{0, 0.5, 1} {
				t.Run(fmt.Sprintf("phase %v cut %v applied %v", phase, cut, applied), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { flap(t, phase, cut, applied) })
				})
			}
		}
	}
}

func flap(t *testing.T, phase time.Duration, cut, applied float64) {
	mem, err := memory.New(memory.Config{})
	require.NoError(t, err)
	start := time.Now().Add(-phase)
	w := &world{Store: mem, applied: applied, cut: cut, rng: rand.New(rand.NewPCG(1, 2))}
	w.up = func(now time.Time) bool { return int(now.Sub(start)/time.Second)%2 == 0 }
	r := newRig(t, Config{})
	r.Store.shared, r.Store.take, r.Store.debtor = w, r.Store.takeShared, w
	limit := stores.FixedWindow(5, 10*time.Second)
	var admitted []time.Time
	for range 300 * 50 {
		if r.hit(t, "k", limit).Allowed {
			admitted = append(admitted, time.Now())
		}
		time.Sleep(20 * time.Millisecond)
	}
	stats := r.Stats()
	t.Logf("%d admitted, %d in the worst window; %d decided by the store, %d locally", len(admitted), worst(admitted, limit.Window), stats.Shared, stats.Local)
	require.True(t, fit(admitted, limit))
	require.LessOrEqual(t, len(admitted), 150)
	require.GreaterOrEqual(t, len(admitted), 140)
	if phase != 0 {
		require.Positive(t, stats.Local, "the outages were met")
	}
}

// worst cuts the admissions into windows that open at the first hit, as the limit
// does, and returns the fullest.
func worst(admitted []time.Time, window time.Duration) int {
	most, count := 0, 0
	var opened time.Time
	for _, at := range admitted {
		if count == 0 || at.Sub(opened) >= window {
			opened, count = at, 0
		}
		count++
		most = max(most, count)
	}
	return most
}

// fit tells whether windows that do not overlap can be laid so that each admission
// lies in one and none has more than quota: what a fixed window promises, wherever
// its windows begin. (One may open without an admission: by a hit that was counted
// and whose answer was lost.)
func fit(admitted []time.Time, limit stores.Limit) bool {
	n := len(admitted)
	// ends[i] is the earliest end of windows that hold the first i.
	ends := make([]*time.Time, n+1)
	ends[0] = new(time.Time)
	later := func(a, b time.Time) time.Time {
		if a.After(b) {
			return a
		}
		return b
	}
	for i := range n {
		if ends[i] == nil {
			continue
		}
		earliest := later(*ends[i], admitted[i].Add(1-limit.Window)).Add(limit.Window)
		latest := admitted[i].Add(limit.Window)
		for j := i + 1; j <= min(n, i+limit.Quota); j++ {
			end := later(earliest, admitted[j-1].Add(1))
			if end.After(latest) || j < n && end.After(admitted[j]) {
				continue
			}
			if ends[j] == nil || end.Before(*ends[j]) {
				ends[j] = &end
			}
		}
	}
	return ends[n] != nil
}

func TestFit(t *testing.T) {
	at := func(seconds ...int) []time.Time {
		var times []time.Time
		for _, s := range seconds {
			times = append(times, time.Unix(int64(s), 0))
		}
		return times
	}
	two := stores.FixedWindow(2, 10*time.Second)
	require.True(t, fit(at(), two))
	require.True(t, fit(at(0, 9, 10, 11, 20), two))
	require.True(t, fit(at(0, 1, 10, 11), two))
	require.True(t, fit(at(8, 9, 10, 11), two), "the seam")
	require.False(t, fit(at(0, 1, 2, 3, 11), two))
	require.False(t, fit(at(8, 9, 10, 11, 12), two))
	require.False(t, fit(at(3, 3, 3), two))
}

// holds tells whether a fixed window's promise was kept. Where a lost hit may have
// opened a window of the shared store while one of this instance's own was under way
// the two overlap; each of them then has no more than quota, and no interval as long
// as a window has more than twice that, and the hits that were let through because
// nobody knew whether they were counted, and that were not.
func holds(admitted, ends, dropped []time.Time, limit stores.Limit, overlap bool) bool {
	if !overlap {
		return fit(admitted, limit)
	}
	last := len(admitted) - 1
	sameWindow, interval := 0, 0
	for i := range admitted {
		if ends[i].Sub(ends[last]).Abs() <= time.Millisecond {
			sameWindow++
		}
		if admitted[last].Sub(admitted[i]) < limit.Window {
			interval++
		}
	}
	unknown := 0
	for _, at := range dropped {
		if admitted[last].Sub(at) < 2*limit.Window {
			unknown++
		}
	}
	return sameWindow <= limit.Quota && interval <= 2*limit.Quota+unknown
}

// recent bounds what a check after each admission has to look at: several windows.
func recent(times []time.Time) []time.Time { return times[max(0, len(times)-50):] }

// Random schedules of outages, on many keys: no key gets more than its quota in a
// window from one instance, whatever is lost, and none is shut out for longer than a
// window and the gap until its next hit.
func TestRandomSchedules(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 99))
			mem, err := memory.New(memory.Config{})
			require.NoError(t, err)
			down := false
			w := &world{Store: mem, applied: rng.Float64(), cut: rng.Float64(), rng: rng, dropped: make(map[string][]time.Time)}
			switch seed % 4 {
			case 0:
				w.cut = 0
			case 1:
				w.applied = 0
			}
			w.up = func(time.Time) bool { return !down }
			r := newRig(t, Config{})
			r.Store.shared, r.Store.take, r.Store.debtor = w, r.Store.takeShared, w
			limit := stores.FixedWindow(1+rng.IntN(8), time.Duration(1+rng.IntN(20))*time.Second)
			last := make(map[string]time.Time)  // when it was let in
			asked := make(map[string]time.Time) // when it last asked
			gaps := make(map[string]time.Duration)
			admitted := make(map[string][]time.Time)
			ends := make(map[string][]time.Time) // of the windows in which it was
			history := make(map[string][]string)
			start := time.Now()
			for range 4000 {
				if rng.IntN(60) == 0 {
					down = !down
				}
				key := "k" + string(rune('a'+rng.IntN(4)))
				now := time.Now()
				if at, ok := asked[key]; ok {
					gaps[key] = max(gaps[key], now.Sub(at))
				}
				asked[key] = now
				d := r.hit(t, key, limit)
				history[key] = append(history[key], fmt.Sprintf("%8.3f down=%-5v %-10s %-5v left=%d reset=%v", now.Sub(start).Seconds(), down, d.Source, d.Allowed, d.Remaining, d.ResetAfter))
				if d.Allowed {
					admitted[key] = append(admitted[key], now)
					last[key], gaps[key] = now, 0
					ends[key] = append(ends[key], now.Add(d.ResetAfter))
					require.True(t, holds(recent(admitted[key]), recent(ends[key]), w.dropped[key], limit, w.cut > 0 && w.applied > 0), "seed %d key %s limit %s cut %.2f applied %.2f: too many\n%s", seed, key, limit, w.cut, w.applied, strings.Join(history[key][max(0, len(history[key])-80):], "\n"))
				} else if at, ok := last[key]; ok {
					require.LessOrEqual(t, now.Sub(at), limit.Window+gaps[key], "seed %d: %s is shut out", seed, limit)
				}
				time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			}
			require.LessOrEqual(t, strings.Count(r.log.String(), "\n"), len(r.changes))
		})
	}
}
