package failover

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// bare is a stranger's store: Take and nothing else.
type bare struct{ f *fake }

func (b bare) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	return b.f.Take(ctx, hit)
}

func TestBareStore(t *testing.T) {
	s, err := New(bare{newFake(t)}, Config{})
	require.NoError(t, err)
	hit := stores.Hit{Key: "k", Limit: five}
	_, err = s.Peek(t.Context(), hit)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorIs(t, s.Reset(t.Context(), hit), errors.ErrUnsupported)
	require.ErrorIs(t, s.Refund(t.Context(), hit), errors.ErrUnsupported)
	_, err = s.TakeOwing(t.Context(), hit, 1, time.Second)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.NoError(t, s.Supports(five))
	require.NoError(t, s.Supports(stores.SlidingLog(5, time.Second)), "the fallback serves all limits, and the store does not say")
	for i := range 7 {
		d, err := s.Take(t.Context(), hit)
		require.NoError(t, err)
		require.Equal(t, i < 5, d.Allowed)
		require.NotEqual(t, stores.Local, d.Source)
	}
}

func TestPeek(t *testing.T) {
	r := newRig(t, Config{})
	hit := stores.Hit{Key: "k", Limit: five}
	r.hit(t, "k", five)
	for range 3 {
		d, err := r.Peek(t.Context(), hit)
		require.NoError(t, err)
		require.True(t, d.Allowed)
		require.Equal(t, 4, d.Remaining)
		require.Equal(t, stores.Shared, d.Source)
	}
	r.trip(t, errDown)
	r.hit(t, "k", five)
	hit.Outage = stores.OutageRefuse
	d, err := r.Peek(t.Context(), hit)
	require.NoError(t, err)
	require.Equal(t, stores.Local, d.Source)
	require.Equal(t, 3, d.Remaining, "one hit of the shared store's, and one of here")
	require.Error(t, d.Fault)
}

func TestResetInAnOutage(t *testing.T) {
	r := newRig(t, Config{})
	r.trip(t, errDown)
	for range 6 {
		r.hit(t, "k", five)
	}
	require.ErrorIs(t, r.Reset(t.Context(), stores.Hit{Key: "k", Limit: five}), stores.ErrUnavailable)
	require.True(t, r.hit(t, "k", five).Allowed, "what this process holds is cleared all the same")
}

// A hit goes back to where it came from.
func TestRefundAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		hit := stores.Hit{Key: "k", Limit: five}
		r.hit(t, "k", five)
		r.trip(t, errDown)
		d := r.hit(t, "k", five)
		require.Equal(t, stores.Local, d.Source)
		require.NoError(t, r.RefundAt(t.Context(), hit, d.Source))
		require.Equal(t, 3, r.hit(t, "k", five).Remaining, "locally")
		require.ErrorIs(t, r.Refund(t.Context(), hit), stores.ErrUnavailable)
		require.NoError(t, r.RefundAt(t.Context(), hit, stores.None))
		require.NoError(t, r.RefundAt(t.Context(), hit, stores.Remembered))
		r.fake.failWith(nil)
		time.Sleep(openMost)
		require.Equal(t, 2, r.hit(t, "k", five).Remaining, "one before the outage, one in it, and this")
		require.NoError(t, r.Refund(t.Context(), hit))
		require.Equal(t, 2, r.hit(t, "k", five).Remaining)
	})
}

func TestTakeOwing(t *testing.T) {
	r := newRig(t, Config{})
	hit := stores.Hit{Key: "k", Limit: five}
	d, err := r.TakeOwing(t.Context(), hit, 3, time.Second)
	require.NoError(t, err)
	require.Equal(t, 1, d.Remaining)
	require.Equal(t, stores.Shared, d.Source)
	r.trip(t, errDown)
	d, err = r.TakeOwing(t.Context(), hit, 3, time.Second)
	require.NoError(t, err)
	require.False(t, d.Allowed)
	require.Equal(t, stores.Local, d.Source)
	require.Equal(t, 0, d.Remaining)
	_, err = r.TakeOwing(t.Context(), hit, -1, time.Second)
	require.ErrorIs(t, err, stores.ErrInvalid)
}
