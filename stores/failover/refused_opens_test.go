package failover

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// A hit that the fallback refuses opens no window: one that costs more than this
// instance's share would otherwise begin, and so end, windows for nothing.
func TestRefusedHitOpensNoWindowHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Instances: 3})
		limit := stores.FixedWindow(6, 10*time.Second)
		r.trip(t, errDown)
		d, err := r.Take(t.Context(), stores.Hit{Key: "k", Limit: limit, Cost: 3})
		require.NoError(t, err)
		require.False(t, d.Allowed, "an instance grants two")
		time.Sleep(900 * time.Millisecond)
		require.Equal(t, limit.Window, r.hit(t, "k", limit).ResetAfter, "the window opens with the first hit that counts")
	})
}
