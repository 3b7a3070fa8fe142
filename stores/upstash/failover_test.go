package upstash_test

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
	"github.com/sallyport/sallyport/stores/upstash"
)

func guarded(t testing.TB, srv *upstashtest.Server, change ...func(*upstash.Config)) *failover.Store {
	t.Helper()
	s, err := failover.New(open(t, srv.URL, change...), failover.Config{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return s
}

// TestFlapping: the database comes and goes every second for 300 s, while one key gets
// 50 hits a second. Whether it refuses connections or works and loses its answers, no
// window lets more than five through, and each lets almost as many. Windows of 10 s open
// all in a good second or, where the first one is bad, all in a bad one; those of 7 s in
// both.
func TestFlapping(t *testing.T) {
	manners := map[string]func(srv *upstashtest.Server, second int){
		"down":    func(srv *upstashtest.Server, second int) { srv.SetDown(second%2 == 1) },
		"cut":     func(srv *upstashtest.Server, second int) { srv.CutAfterApply(1000 * (second % 2)) },
		"silent":  func(srv *upstashtest.Server, second int) { srv.SetDelay(time.Hour * time.Duration(second%2)) },
		"refuses": func(srv *upstashtest.Server, second int) { srv.SetSlotError("*", []string{"", "READONLY x"}[second%2]) },
		"forgets": func(srv *upstashtest.Server, second int) {
			srv.SetDown(second%2 == 1)
			_, _ = srv.Do("SCRIPT", "FLUSH")
		},
		"all": func(srv *upstashtest.Server, second int) {
			srv.SetDown(second%4 == 1)
			srv.CutAfterApply(1000 * (second % 4 / 3))
		},
	}
	for name, manner := range manners {
		for _, flap := range []struct {
			window time.Duration
			first  int
		}{{10 * time.Second, 0}, {10 * time.Second, 1}, {7 * time.Second, 0}} {
			for _, costs := range [][2]int{{1, 1}, {1, 2}, {2, 2}} {
				t.Run(fmt.Sprintf("%s from %d, %s, costs %v", name, flap.first, flap.window, costs), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := upstashtest.NewBubble(t)
						s := guarded(t, srv, func(c *upstash.Config) { c.Transport = srv.Transport() })
						limit := stores.FixedWindow(5, flap.window)
						var admitted []time.Time // when they were sent: so long a silent database holds them up
						start, second := time.Now(), -1
						for i := 0; time.Since(start) < 300*time.Second; i++ {
							if now := int(time.Since(start) / time.Second); now != second {
								second = now
								manner(srv, second+flap.first)
							}
							sent := time.Now()
							d, err := s.Take(t.Context(), stores.Hit{Key: "k", Limit: limit, Cost: costs[i%2]})
							require.NoError(t, err)
							for range costs[i%2] {
								if d.Allowed {
									admitted = append(admitted, sent)
								}
							}
							time.Sleep(20 * time.Millisecond)
						}
						most := int(300 * time.Second / flap.window * 5)
						require.LessOrEqual(t, fullest(admitted, limit.Window), 5)
						require.LessOrEqual(t, len(admitted), most+5)
						require.GreaterOrEqual(t, len(admitted), most*2/3)
					})
				})
			}
		}
	}
}

// fullest cuts what was let through into windows that open at the first hit, as the
// limit does, and counts what the fullest holds.
func fullest(admitted []time.Time, window time.Duration) (most int) {
	for len(admitted) > 0 {
		n := 0
		for n < len(admitted) && admitted[n].Sub(admitted[0]) < window {
			n++
		}
		most = max(most, n)
		admitted = admitted[n:]
	}
	return most
}

// TestDebtIsPaid: what an outage let through is out of the quota for every instance when
// the database is back, and until the window ends in which it was.
func TestDebtIsPaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := upstashtest.NewBubble(t)
		over := func(c *upstash.Config) { c.Transport = srv.Transport() }
		s, other := guarded(t, srv, over), guarded(t, srv, over)
		hit := stores.Hit{Key: "k", Limit: stores.FixedWindow(5, time.Minute)}
		take := func(s *failover.Store) stores.Decision {
			d, err := s.Take(t.Context(), hit)
			require.NoError(t, err)
			return d
		}
		srv.SetDown(true)
		for range 3 {
			require.True(t, take(s).Allowed)
		}
		srv.SetDown(false)
		time.Sleep(20 * time.Second)
		d := take(s)
		require.True(t, d.Allowed)
		require.Equal(t, stores.Shared, d.Source)
		require.Equal(t, 1, d.Remaining)
		require.Equal(t, 40*time.Second, d.ResetAfter, "the end of its own window")
		require.Zero(t, s.Stats().Debts)
		require.True(t, take(other).Allowed)
		require.False(t, take(other).Allowed)
		time.Sleep(40 * time.Second)
		require.Equal(t, 4, take(other).Remaining)
	})
}

// TestScriptNeverRunsBehindFailover: the fallback decides what needs the script. Where
// no script may run at all, hits of cost 1 are counted by the database as ever.
func TestScriptNeverRunsBehindFailover(t *testing.T) {
	for text, others := range map[string]bool{
		"NOPERM this user has no permissions to run the 'evalsha' command": true,
		"NOSCRIPT No matching script. Please use EVAL.":                    false,
	} {
		t.Run(text[:6], func(t *testing.T) {
			srv := upstashtest.New(t)
			srv.SetSlotError("EVALSHA", text)
			srv.SetSlotError("EVAL", text)
			s := guarded(t, srv)
			for i := range 200 {
				heavy := stores.Hit{Key: fmt.Sprint("heavy:", i%20), Limit: stores.FixedWindow(5, time.Hour), Cost: 2}
				d, err := s.Take(t.Context(), heavy)
				require.NoError(t, err)
				require.Equal(t, stores.Local, d.Source)
				require.Equal(t, i < 40, d.Allowed)
				light := stores.Hit{Key: fmt.Sprint("light:", i), Limit: stores.FixedWindow(5, time.Hour)}
				d, err = s.Take(t.Context(), light)
				require.NoError(t, err)
				require.True(t, d.Allowed)
				if others {
					require.Equal(t, stores.Shared, d.Source)
				}
			}
		})
	}
}
