package upstash_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

// TestChainBehindFailover: several limits are one exchange there too, a refusal that is
// remembered is none, and what memory let through in an outage goes along with the hits
// that come after it.
func TestChainBehindFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := upstashtest.NewBubble(t)
		s := guarded(t, srv, func(c *upstash.Config) { c.Transport = srv.Transport() })
		hits := mixed("")
		out := make([]stores.Decision, len(hits))
		take := func() int {
			n, err := s.TakeAll(t.Context(), hits, out)
			require.NoError(t, err)
			return n
		}
		require.Equal(t, len(hits), take())
		srv.Forget()
		require.Equal(t, len(hits), take())
		require.Equal(t, 1, srv.Requests())
		for _, d := range out {
			require.Equal(t, stores.Shared, d.Source)
			require.Equal(t, 3, d.Remaining)
		}

		srv.SetDown(true)
		require.Equal(t, len(hits), take())
		for i, d := range out {
			require.Equal(t, stores.Local, d.Source)
			require.True(t, d.Allowed, hits[i].Limit)
		}
		srv.SetDown(false)
		time.Sleep(10 * time.Second)
		srv.Forget()
		require.Equal(t, len(hits), take())
		require.Equal(t, 1, srv.Requests(), "the debts go along")
		for i, d := range out {
			require.Equal(t, stores.Shared, d.Source)
			require.Equal(t, 1, d.Remaining, "%s: two before the outage, one in it, and this one", hits[i].Limit)
		}
		require.Zero(t, s.Stats().Debts)

		require.Equal(t, len(hits), take())
		require.Equal(t, 1, take(), "the first limit is used up")
		srv.Forget()
		for range 100 {
			take()
		}
		require.Zero(t, srv.Requests())
	})
}
