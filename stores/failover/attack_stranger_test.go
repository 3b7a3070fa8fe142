package failover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// stranger is a store of somebody else's, which answers what it is told to.
type stranger func(ctx context.Context, hit stores.Hit) (stores.Decision, error)

func (s stranger) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	return s(ctx, hit)
}

func (s stranger) Peek(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	return s(ctx, hit)
}

// Whatever numbers a store tells, those that are handed on lie within the contract's
// bounds, and no key is shut out, or let in, for longer than its window.
func TestNonsenseNumbers(t *testing.T) {
	extremes := []time.Duration{math.MinInt64, -1, 0, 1, 30 * time.Second, time.Minute, time.Hour, math.MaxInt64}
	counts := []int{math.MinInt, -1, 0, 1, 5, 6, math.MaxInt}
	for _, allowed := range []bool{true, false} {
		for _, remaining := range counts {
			for _, retry := range extremes {
				for _, reset := range extremes {
					told := stores.Decision{Allowed: allowed, Source: stores.None, Remaining: remaining, RetryAfter: retry, ResetAfter: reset, Delay: reset, Fault: errOdd}
					synctest.Test(t, func(t *testing.T) { nonsense(t, told) })
				}
			}
		}
	}
}

func nonsense(t *testing.T, told stores.Decision) {
	var err error
	s, newErr := New(stranger(func(context.Context, stores.Hit) (stores.Decision, error) { return told, err }), Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, newErr)
	hit := stores.Hit{Key: "k", Limit: five}
	sane := func(d stores.Decision, err error) stores.Decision {
		require.NoError(t, err)
		why := fmt.Sprintf("%+v from %+v", d, told)
		require.True(t, d.Remaining >= 0 && d.Remaining <= five.Quota, why)
		for _, wait := range []time.Duration{d.RetryAfter, d.ResetAfter, d.Delay} {
			require.True(t, wait >= 0 && wait <= five.Window, why)
		}
		require.True(t, !d.Allowed || d.RetryAfter == 0, why)
		require.Equal(t, d.Source == stores.Local, d.Fault != nil, why)
		return d
	}
	sane(s.Peek(t.Context(), hit))
	let := 0
	for range 3 {
		if sane(s.Take(t.Context(), hit)).Allowed {
			let++
		}
	}
	err = errDown
	for range 10 {
		if sane(s.Take(t.Context(), hit)).Allowed {
			let++
		}
	}
	require.LessOrEqual(t, let, five.Quota, "%+v", told)
	sane(s.Peek(t.Context(), hit))
	time.Sleep(five.Window)
	require.True(t, sane(s.Take(t.Context(), hit)).Allowed, "shut out for longer than a window by %+v", told)
}

// broken is an error that can't be read, such as a nil pointer that became an error.
type broken struct{ cause error }

func (b *broken) Error() string { return b.cause.Error() }
func (b *broken) Unwrap() error { return b.cause }

// A store's error that panics when one looks at it is a failure like any other.
func TestErrorThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		var none *broken
		r.fake.failWith(none)
		for i := range 10 {
			d := r.hit(t, "k", five)
			require.Equal(t, i < 5, d.Allowed)
			require.ErrorIs(t, d.Fault, stores.ErrUnavailable)
			require.NotEmpty(t, d.Fault.Error())
		}
		require.Equal(t, Open, r.Stats().State)
		require.Empty(t, r.inFlight)
		r.fake.failWith(nil)
		time.Sleep(openMost)
		r.hit(t, "other", five)
		require.Equal(t, Closed, r.Stats().State)
	})
}

// A store that heeds no deadline and answers in its own time is slow, and that trips
// the breaker. What it answered stands.
func TestLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.hit(t, "warm", five)
		r.fake.set(func(f *fake) { f.late = 3 * time.Second })
		waited := 0
		for range 100 {
			start := time.Now()
			d := r.hit(t, "k", stores.FixedWindow(1000, time.Hour))
			if time.Since(start) > 0 {
				require.Equal(t, stores.Shared, d.Source, "it was counted there")
				waited++
			}
		}
		require.Equal(t, tripInARow, waited)
	})
}

// halfDebtor has TakeOwing, and says that it does not serve this limit.
type halfDebtor struct{ *fake }

func (h halfDebtor) TakeOwing(context.Context, stores.Hit, int, time.Duration) (stores.Decision, error) {
	return stores.Decision{}, fmt.Errorf("no debts: %w", errors.ErrUnsupported)
}

// Such a store gets no debts, and the instance itself keeps to the quota, as where
// TakeOwing is lacking.
func TestUnsupportedDebts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		s, err := New(halfDebtor{f}, Config{})
		require.NoError(t, err)
		let := 0
		for second := range 20 {
			f.failWith(nil)
			if second%8 < 4 {
				f.failWith(errDown)
			}
			for range 10 {
				d, err := s.Take(t.Context(), stores.Hit{Key: "k", Limit: stores.FixedWindow(50, time.Minute)})
				require.NoError(t, err)
				if d.Allowed {
					let++
				}
			}
			time.Sleep(time.Second)
		}
		require.Equal(t, 50, let)
	})
}

// Of two refunds that cross an answer's way neither makes this instance forget that
// it let the hit through.
func TestRefundDoesNotHideAHit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		hit := stores.Hit{Key: "k", Limit: five}
		r.hit(t, "k", five)
		r.fake.set(func(f *fake) { f.late = 100 * time.Millisecond })
		let := 0
		for range 4 { // each pair: one hit that stays, one that is given back meanwhile
			done := make(chan stores.Decision)
			go func() { done <- r.hit(t, "k", five) }()
			synctest.Wait()
			require.NoError(t, r.Refund(t.Context(), hit))
			if (<-done).Allowed {
				let++
			}
			mem, err := r.fake.mem.Take(t.Context(), hit)
			require.NoError(t, err)
			require.True(t, mem.Allowed, "by another instance, so that the level is as it was")
		}
		r.fake.failWith(errDown)
		for range 10 {
			if r.hit(t, "k", five).Allowed {
				let++
			}
		}
		require.LessOrEqual(t, let, five.Quota)
	})
}
