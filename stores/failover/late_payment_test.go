package failover

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// A payment that arrives after its window has ended opens no window of what was left of
// it: after so short a one the key would have a second quota at once.
func TestLatePaymentOpensNoShortWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		limit := stores.FixedWindow(20, 10*time.Second)
		r.trip(t, errDown)
		opened := time.Now()
		require.True(t, r.hit(t, "k", limit).Allowed) // by memory, and owed
		r.fake.failWith(nil)
		time.Sleep(openMost)
		r.hit(t, "other", five) // finds the store again
		time.Sleep(limit.Window - 80*time.Millisecond - time.Since(opened))

		r.fake.set(func(f *fake) { f.delay = 400 * time.Millisecond })
		r.hit(t, "k", limit) // with the debt of a window that ends in 80 ms
		r.fake.set(func(f *fake) { f.delay = 0 })
		time.Sleep(max(0, limit.Window+time.Millisecond-time.Since(opened)))
		d := r.hit(t, "k", limit)
		require.True(t, d.Allowed)
		require.Greater(t, d.ResetAfter, limit.Window/2, "a window that is over before it has begun")
	})
}
