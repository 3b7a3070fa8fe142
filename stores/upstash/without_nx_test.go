package upstash_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
)

// TestWithoutNX: a server that does not know PEXPIRE ... NX, as Redis before 7, has
// windows that open at the first hit and are not moved by later ones.
func TestWithoutNX(t *testing.T) {
	for _, text := range []string{
		"ERR wrong number of arguments for 'pexpire' command", "ERR syntax error", "ERR Unsupported option NX",
	} {
		var log journal
		srv := upstashtest.NewScripted(t, func(x *upstashtest.Exchange) bool {
			for i, c := range x.Commands {
				if len(c) != 4 {
					continue
				}
				all := x.Commands
				x.Commands = append(all[:i:i], all[i+1:]...)
				done := strings.TrimSuffix(strings.TrimPrefix(x.Apply(), "["), "]")
				slots := strings.Split(done, ",")
				slots = append(slots[:i:i], append([]string{`{"error":` + jsonString(text) + `}`}, slots[i:]...)...)
				return upstashtest.Reply(200, "application/json", "["+strings.Join(slots, ",")+"]")(x)
			}
			return upstashtest.Good()(x)
		})
		s := open(t, srv.URL, logTo(&log))
		hit := stores.Hit{Key: "a", Limit: stores.FixedWindow(5, time.Minute)}
		for i := range 8 {
			d, certain, err := s.TakeCertain(t.Context(), hit)
			require.NoError(t, err)
			require.Equal(t, i < 5, d.Allowed)
			require.Equal(t, time.Minute, d.ResetAfter, "the counter behind it has no clock")
			require.Equal(t, i < 5, certain, "its windows always look new")
			require.Equal(t, 1, srv.Applied("PEXPIRE"), "by the hit that opened the window")
		}
		require.Equal(t, 2, srv.Came("PEXPIRE"), "one with NX, then a plain one for the hit that opened the window")
		require.Equal(t, 9, len(srv.Requests()), "one exchange a hit, and one for the expiry")

		_, err := s.Take(t.Context(), stores.Hit{Key: "b", Limit: hit.Limit})
		require.NoError(t, err)
		require.Equal(t, 2, srv.Applied("PEXPIRE"))
		require.Equal(t, 1, strings.Count(log.String(), "does not know"), log.String())

		// The second exchange fails: the count stands, and the next hit heals it.
		script := func(fs ...upstashtest.Fault) { srv.Script(fs...) }
		script(upstashtest.Good(), upstashtest.Close(), upstashtest.Good())
		hit.Key = "c"
		d, err := s.Take(t.Context(), hit)
		require.NoError(t, err)
		require.True(t, d.Allowed)
		require.Equal(t, 1, strings.Count(log.String(), "no expiry"), log.String())
		before := srv.Applied("PEXPIRE")
		d, err = s.Take(t.Context(), hit)
		require.NoError(t, err)
		require.Equal(t, 3, d.Remaining)
		require.Equal(t, before+1, srv.Applied("PEXPIRE"))
	}
}
