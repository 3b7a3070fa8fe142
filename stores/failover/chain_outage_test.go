package failover

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// While the breaker is open a chain makes ready for no call: no deadline, no timer.
func TestChainInAnOutageSetsNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newChained(t)
		f.failWith(errDown)
		f.fails = func(int, []stores.Hit) (int, error) { return 0, errDown }
		hits := hitsOn(five, "a", "b")
		for range tripInARow {
			takeEach(t, s, hits, nil)
		}
		require.Equal(t, Open, s.Stats().State)
		now := s.clock.Now()
		c := s.newCall(context.Background(), now)
		ch := chain{hits: hits, out: make([]stores.Decision, len(hits))}
		_, err := s.takeSome(&c, &ch)
		require.NoError(t, err)
		require.False(t, c.tried)
		c.end()
	})
}
