package failover

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// A payment that fails after its window has ended is no debt of the next one.
func TestDebtEndsOnItsWayToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		limit := stores.FixedWindow(5, 10*time.Second)
		r.hit(t, "warm", five)
		r.trip(t, errDown)
		for range 5 {
			r.hit(t, "k", limit)
		}
		time.Sleep(limit.Window - 100*time.Millisecond) // the probe carries the debt over its window's end
		r.fake.set(func(f *fake) {
			f.fail = func(_ int, ctx context.Context, _ stores.Hit) error {
				<-ctx.Done()
				return errDown
			}
		})
		done := make(chan stores.Decision)
		go func() { done <- r.hit(t, "k", limit) }()
		time.Sleep(200 * time.Millisecond)
		require.True(t, r.hit(t, "k", limit).Allowed, "in the next window")
		<-done
		r.fake.failWith(nil)
		time.Sleep(openMost)
		for i := range 4 {
			require.Equal(t, i < 3 || r.fake.paid < 2, r.hit(t, "k", limit).Allowed, "hit %d, paid %d", i, r.fake.paid)
		}
		require.LessOrEqual(t, r.fake.paid, 2, "what was let through in this window")
	})
}

// Reset ends a debt that is on its way, and fills no record anew with an answer from
// before the shared store forgot the key.
func TestResetWhileAPaymentIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.hit(t, "warm", five)
		r.trip(t, errDown)
		for range 5 {
			r.hit(t, "k", five)
		}
		time.Sleep(openMost)
		r.fake.set(func(f *fake) {
			f.fail = func(_ int, ctx context.Context, _ stores.Hit) error {
				<-ctx.Done()
				return errDown
			}
		})
		done := make(chan stores.Decision)
		go func() { done <- r.hit(t, "k", five) }()
		synctest.Wait()
		require.Error(t, r.Reset(t.Context(), stores.Hit{Key: "k", Limit: five}))
		require.True(t, r.hit(t, "k", five).Allowed, "this opens another window")
		<-done
		r.fake.failWith(nil)
		time.Sleep(openMost)
		require.True(t, r.hit(t, "k", five).Allowed)
		require.LessOrEqual(t, r.fake.paid, 2)
	})
}

func TestAnswersDuringAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		for range 5 {
			r.hit(t, "k", five)
		}
		r.fake.set(func(f *fake) { f.delay = 100 * time.Millisecond })
		done := make(chan error)
		go func() { done <- r.Reset(t.Context(), stores.Hit{Key: "k", Limit: five}) }()
		time.Sleep(10 * time.Millisecond)
		r.fake.set(func(f *fake) { f.delay = 0 })
		require.False(t, r.hit(t, "k", five).Allowed, "the shared store has not forgotten it yet")
		require.NoError(t, <-done)
		r.fake.failWith(errDown)
		require.True(t, r.hit(t, "k", five).Allowed)
	})
}

// The answer to a question from before a window opened, which speaks of the window
// that ended then, does not shorten the new one: each such answer would mint another
// share of the fallback.
func TestAnswerOfAWindowThatIsOver(t *testing.T) {
	const second = int64(time.Second)
	limit := stores.FixedWindow(5, 10*time.Second)
	hit := stores.Hit{Key: "k", Limit: limit}
	old := stores.Decision{Allowed: true, Remaining: 3, ResetAfter: 100 * time.Millisecond}
	for name, openNext := range map[string]func(k *keyed, now int64){
		"opened here": func(k *keyed, now int64) { k.take(now, true) },
		"told of": func(k *keyed, now int64) {
			d, _, err := k.send(now, now)
			if err != nil {
				panic(err)
			}
			k.answered(d, &stores.Decision{Allowed: true, Remaining: 4, ResetAfter: limit.Window}, true, false, now, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFallback(0, 1)
			k := f.of(&hit)
			first, _, err := k.send(1, 1)
			require.NoError(t, err)
			k.answered(first, &stores.Decision{Allowed: true, Remaining: 4, ResetAfter: time.Duration(second + second/10)}, true, false, 1, 0)
			late, _, err := k.send(second, second)
			require.NoError(t, err)
			openNext(&k, 2*second)
			k.answered(late, &old, true, false, 2*second+second/2, second+second/2)
			d := k.peek(3 * second)
			require.Equal(t, 4, d.Remaining, "one in this window")
			require.Equal(t, 9*time.Second, d.ResetAfter)
		})
	}
}

// A payment that is over wakes those who wait for it, and not those who wait for
// another one of the same key.
func TestPaymentsOfOneKey(t *testing.T) {
	f := newFallback(0, 1)
	hit := stores.Hit{Key: "k", Limit: five}
	k := f.of(&hit)
	owing := func(now int64) debt {
		require.True(t, k.take(now, true).Allowed)
		d, wait, err := k.send(now, now)
		require.NoError(t, err)
		require.Nil(t, wait)
		require.Equal(t, int64(1), d.owed)
		return d
	}
	first := owing(1)
	k.window.table.Delete(k.window.table.Find(k.window.hash)) // evicted
	second := owing(2)
	k.failed(first, false, 3)
	_, wait, err := k.send(4, 4)
	require.NoError(t, err)
	require.NotNil(t, wait, "the second is still on its way")
	k.failed(second, true, 5)
	<-wait
	require.Empty(t, f.payments.last)
}

// Peek tells of debts and doubts as Take would meet them.
func TestPeekHeedsDebts(t *testing.T) {
	for name, doubtful := range map[string]bool{"owed": false, "doubtful": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{})
				hit := stores.Hit{Key: "k", Limit: five}
				r.trip(t, errDown)
				for range 5 {
					require.True(t, r.hit(t, "k", five).Allowed)
				}
				if doubtful {
					k := r.fallback.of(&hit)
					k.window.table.At(k.window.table.Find(k.window.hash)).doubtful = true
				}
				r.fake.failWith(nil)
				time.Sleep(openMost)
				r.hit(t, "other", five)
				for range 2 {
					d, err := r.Peek(t.Context(), hit)
					require.NoError(t, err)
					require.False(t, d.Allowed)
					require.Zero(t, d.Remaining)
					require.Equal(t, five.Window-openMost, d.RetryAfter)
					require.Equal(t, doubtful, d.Source == stores.Local)
				}
				require.False(t, r.hit(t, "k", five).Allowed)
			})
		})
	}
}
