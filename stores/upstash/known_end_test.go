package upstash_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

// TestNoDebtIsTake: without a debt TakeOwing is Take, which for a cost of 1 is cheaper.
func TestNoDebtIsTake(t *testing.T) {
	srv := upstashtest.New(t)
	s := open(t, srv.URL)
	for i, debt := range []struct {
		owed  int
		until time.Duration
	}{{0, time.Second}, {3, 0}, {0, 0}} {
		d, err := s.TakeOwing(t.Context(), five, debt.owed, debt.until)
		require.NoError(t, err)
		require.Equal(t, 4-i, d.Remaining)
	}
	require.Equal(t, []string{"INCR", "PEXPIRE", "PTTL", "INCR", "PEXPIRE", "INCR", "PEXPIRE"}, names(srv))
	d, err := s.TakeOwing(t.Context(), costing(five, 6), 0, time.Second)
	require.NoError(t, err)
	require.Equal(t, stores.Decision{}, d)
	require.Zero(t, srv.Requests())
}

// TestEndIsKnownByScript: what the script told of a window's end the pipeline need not
// ask for, and after a refund, which lowers the count, it asks.
func TestEndIsKnownByScript(t *testing.T) {
	run := func(t *testing.T, srv *upstashtest.Server, over ...func(*upstash.Config)) {
		var log journal
		over = append(over, logTo(&log))
		s, other := open(t, srv.URL, over...), open(t, srv.URL, over...)
		hit := stores.Hit{Key: "k", Limit: stores.FixedWindow(9, time.Hour)}
		_, err := srv.Do("SET", "k", 0, "PX", 1800_000)
		require.NoError(t, err)
		take := func(s *upstash.Store, cost, remaining int, knows bool, commands int) {
			t.Helper()
			srv.Forget()
			d, certain, err := s.TakeCertain(t.Context(), costing(hit, cost))
			require.NoError(t, err)
			require.Equal(t, remaining, d.Remaining)
			require.Equal(t, knows, certain)
			require.Greater(t, d.ResetAfter, 29*time.Minute)
			require.Equal(t, commands, srv.Count(""))
		}
		take(s, 2, 7, true, 2) // with the EVAL
		take(s, 1, 6, true, 2)
		take(other, 1, 5, true, 3)
		take(other, 2, 3, true, 1)
		take(s, 1, 2, true, 2)
		require.NoError(t, s.Refund(t.Context(), costing(hit, 3)))
		take(s, 1, 4, true, 3)
		take(s, 1, 3, true, 2)

		// The other one does not know of the refund, and can't tell it from a Reset. The
		// next hit asks. Nobody calls it a loss.
		take(other, 1, 2, true, 2)
		require.NoError(t, s.Refund(t.Context(), costing(hit, 2)))
		take(other, 1, 3, false, 2)
		take(other, 1, 2, true, 3)
		require.NoError(t, s.Refund(t.Context(), costing(hit, 4)))
		take(other, 2, 4, true, 1)
		require.Empty(t, log.String())

		// But a window that is gone before its time is one.
		_, err = srv.Do("DEL", "k")
		require.NoError(t, err)
		take(other, 2, 7, true, 1)
		require.Equal(t, 1, strings.Count(log.String(), "went backwards"), log.String())
	}
	synctest.Test(t, func(t *testing.T) {
		srv := upstashtest.NewBubble(t)
		run(t, srv, func(c *upstash.Config) { c.Transport = srv.Transport() })
	})
	run(t, upstashtest.NewReal(t))
}
