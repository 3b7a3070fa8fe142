package upstash_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

// raw is the counter and its PTTL; "" is no key.
func raw(t *testing.T, srv *upstashtest.Server, key string) (value string, ttl int64) {
	t.Helper()
	v, err := srv.Do("GET", key)
	require.NoError(t, err)
	left, err := srv.Do("PTTL", key)
	require.NoError(t, err)
	value, _ = v.(string)
	return value, left.(int64)
}

// TestRules puts a counter where it is, and looks where one step leaves it: quota 5, a
// window of an hour, and a payment's of a minute.
func TestRules(t *testing.T) {
	const (
		none  = int64(-2)
		never = int64(-1)
		kept  = int64(500_000) // ms, and up to a minute less by now
		hour  = int64(3600_000)
		until = int64(60_000)
	)
	take := func(cost int) func(*testing.T, *upstash.Store) string {
		return func(t *testing.T, s *upstash.Store) string {
			d, err := s.Take(t.Context(), stores.Hit{Key: "k", Limit: stores.FixedWindow(5, time.Hour), Cost: cost})
			require.NoError(t, err)
			return fmt.Sprint(d.Allowed, d.Remaining)
		}
	}
	owe := func(cost, owed int) func(*testing.T, *upstash.Store) string {
		return func(t *testing.T, s *upstash.Store) string {
			hit := stores.Hit{Key: "k", Limit: stores.FixedWindow(5, time.Hour), Cost: cost}
			d, err := s.TakeOwing(t.Context(), hit, owed, time.Minute)
			require.NoError(t, err)
			require.Equal(t, d.Allowed || cost > 5, d.RetryAfter == 0)
			return fmt.Sprint(d.Allowed, d.Remaining)
		}
	}
	refund := func(cost int) func(*testing.T, *upstash.Store) string {
		return func(t *testing.T, s *upstash.Store) string {
			hit := stores.Hit{Key: "k", Limit: stores.FixedWindow(5, time.Hour), Cost: cost}
			require.NoError(t, s.Refund(t.Context(), hit))
			return ""
		}
	}
	cases := []struct {
		name  string
		value string
		ttl   int64
		step  func(*testing.T, *upstash.Store) string
		says  string
		then  string
		left  int64
	}{
		{"a cost opens a window", "", none, take(3), "true 2", "3", hour},
		{"a cost in a window", "2", kept, take(3), "true 0", "5", kept},
		{"a cost in a window that was refunded to 0", "0", kept, take(3), "true 2", "3", kept},
		{"a cost too high", "3", kept, take(3), "false 2", "3", kept},
		{"a cost at the quota", "5", kept, take(2), "false 0", "5", kept},
		{"a cost above the quota of hits", "9", kept, take(2), "false 0", "9", kept},
		{"a cost above all that a number holds", "9223372036854775807", kept, take(2), "false 0", "9223372036854775807", kept},
		{"a cost heals", "2", never, take(3), "true 0", "5", hour},
		{"a refused cost heals", "9", never, take(3), "false 0", "9", hour},

		{"a debt opens a window", "", none, owe(1, 2), "true 2", "3", until},
		{"a debt opens a window and its hit is refused", "", none, owe(4, 2), "false 3", "2", until},
		{"a debt opens a window for a hit that never passes", "", none, owe(6, 2), "false 3", "2", until},
		{"a debt of all", "", none, owe(1, 5), "false 0", "5", until},
		{"a debt of more than all", "", none, owe(1, 1<<62), "false 0", "5", until},
		{"a debt in a window", "1", kept, owe(1, 2), "true 1", "4", kept},
		{"a debt fills a window", "4", kept, owe(1, 2), "false 0", "5", kept},
		{"a debt at the quota", "5", kept, owe(1, 2), "false 0", "5", kept},
		{"a debt above the quota", "9", kept, owe(1, 2), "false 0", "9", kept},
		{"a debt heals", "1", never, owe(1, 2), "true 1", "4", hour},

		{"a refund", "4", kept, refund(3), "", "1", kept},
		{"a refund of all", "4", kept, refund(4), "", "0", kept},
		{"a refund of more", "4", kept, refund(5), "", "0", kept},
		{"a refund of more than ever", "4", kept, refund(1 << 62), "", "0", kept},
		{"a refund of nothing", "0", kept, refund(1), "", "0", kept},
		{"a refund of no key", "", none, refund(1), "", "", none},
		{"a refund from above the quota", "9", kept, refund(1), "", "4", kept},
		{"a refund from far above", "9223372036854775807", kept, refund(1), "", "4", kept},
		{"a refund heals", "4", never, refund(1), "", "3", hour},
	}
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				_, err := srv.Do("DEL", "k")
				require.NoError(t, err)
				if tc.value != "" {
					_, err = srv.Do("SET", "k", tc.value)
					require.NoError(t, err)
				}
				if tc.ttl > 0 {
					_, err = srv.Do("PEXPIRE", "k", tc.ttl)
					require.NoError(t, err)
				}
				require.Equal(t, tc.says, tc.step(t, open(t, srv.URL)))
				value, left := raw(t, srv, "k")
				require.Equal(t, tc.then, value)
				if tc.left < 0 {
					require.Equal(t, tc.left, left)
					return
				}
				require.LessOrEqual(t, left, tc.left)
				require.Greater(t, left, tc.left-until)
			})
		}
	})
}

// TestForeignKeyByScript: what is no counter is a fault of that key, and stays as it is.
func TestForeignKeyByScript(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		s := open(t, srv.URL)
		for _, value := range []string{"a word", "", "-3", "1.5", "0x10", "1e3", " 5", "5 ", "inf", "nan", "5\n", "5\x00"} {
			_, err := srv.Do("SET", secretKey, value, "PX", 60000)
			require.NoError(t, err)
			_, err = s.Take(t.Context(), costing(five, 2))
			ofKey.check(t, err)
			_, err = s.TakeOwing(t.Context(), five, 2, time.Second)
			ofKey.check(t, err)
			ofKey.check(t, s.Refund(t.Context(), five))
			got, _ := raw(t, srv, secretKey)
			require.Equal(t, value, got)
		}
		_, err := srv.Do("DEL", secretKey)
		require.NoError(t, err)
		_, err = srv.Do("RPUSH", secretKey, "x")
		require.NoError(t, err)
		_, err = s.Take(t.Context(), costing(five, 2))
		ofKey.check(t, err)
		ofKey.check(t, s.Refund(t.Context(), five))
	})
}

// TestLargestNumbers: to the last unit below 2^53, where a float would be off by one.
func TestLargestNumbers(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		s := open(t, srv.URL)
		const most = 1<<53 - 1
		limit := stores.FixedWindow(most, 10*365*24*time.Hour)
		value := func(want int) {
			t.Helper()
			got, ttl := raw(t, srv, "k")
			require.Equal(t, strconv.Itoa(want), got)
			require.Positive(t, ttl)
		}
		take := func(cost int, allowed bool, remaining int) {
			t.Helper()
			d, err := s.Take(t.Context(), stores.Hit{Key: "k", Limit: limit, Cost: cost})
			require.NoError(t, err)
			require.Equal(t, allowed, d.Allowed)
			require.Equal(t, remaining, d.Remaining)
		}
		take(most-1, true, 1)
		value(most - 1)
		take(2, false, 1)
		take(most, false, 1)
		take(1, true, 0)
		value(most)
		require.NoError(t, s.Refund(t.Context(), stores.Hit{Key: "k", Limit: limit, Cost: most - 2}))
		value(2)
		d, err := s.TakeOwing(t.Context(), stores.Hit{Key: "k", Limit: limit, Cost: 2}, most-4, limit.Window)
		require.NoError(t, err)
		require.True(t, d.Allowed)
		value(most)
	})
}

// TestWindowEndsWithinTheScript: on a server whose time goes on while a script runs, a
// window may end between two of its commands. What is written then must not stay for
// ever. The script is the shipped one, with the end put in.
func TestWindowEndsWithinTheScript(t *testing.T) {
	text := upstash.Script
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		for behind, then := range map[string]struct{ value string }{
			"local counter = redis.pcall('GET', key)\n": {"2"}, // it opens the next window
			"left = redis.pcall('PTTL', key)\n":         {""},  // it ended with the old one
		} {
			require.Equal(t, 1, strings.Count(text, behind))
			script := strings.Replace(text, behind, behind+"redis.call('DEL', key)\n", 1)
			_, err := srv.Do("SET", "k", 3, "PX", 60000)
			require.NoError(t, err)
			got, err := srv.Do("EVAL", script, 1, "k", "take", "counter", 5, 2, 60000, 0, 0, 0, 0, 0)
			require.NoError(t, err)
			require.Equal(t, int64(1), got.([]any)[0])
			value, ttl := raw(t, srv, "k")
			require.Equal(t, then.value, value)
			require.NotEqual(t, int64(-1), ttl)
		}
	})
}

// TestParallelMix: takers of one unit, by the pipeline, and of several, by the script,
// payers and those who refund what they took, 100 at once through ten instances. What
// is used in the end is exactly what was taken and not given back, and never too much.
func TestParallelMix(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		var instances [10]*upstash.Store
		for i := range instances {
			instances[i] = open(t, srv.URL)
		}
		rounds := 30
		if upstash.RaceDetector {
			rounds = 6
		}
		for round := range rounds {
			// A third of the rounds have room for all, a third for some, and in a third
			// those who pay come on top.
			limit := stores.FixedWindow([]int{1000, 60, 60}[round%3], time.Hour)
			key := fmt.Sprint("round:", round)
			var held, paid atomic.Int64
			start := make(chan struct{})
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() {
					s, cost, owed := instances[i%10], []int{1, 1, 2, 3}[i%4], 0
					if i%5 == 0 && round%3 != 1 {
						owed = 1
					}
					hit := stores.Hit{Key: key, Limit: limit, Cost: cost}
					<-start
					d, err := s.TakeOwing(t.Context(), hit, owed, limit.Window)
					if err != nil {
						t.Error(err)
						return
					}
					paid.Add(int64(owed))
					if !d.Allowed {
						return
					}
					if used := held.Add(int64(cost)); used > int64(limit.Quota) {
						t.Errorf("%d of %d at once", used, limit.Quota)
					}
					if i%3 == 0 {
						held.Add(-int64(cost))
						if err := s.Refund(t.Context(), hit); err != nil {
							t.Error(err)
						}
					}
				})
			}
			close(start)
			wg.Wait()
			d, err := instances[0].Peek(t.Context(), stores.Hit{Key: key, Limit: limit})
			require.NoError(t, err)
			used := int64(limit.Quota - d.Remaining)
			switch round % 3 {
			case 0:
				require.Equal(t, held.Load()+paid.Load(), used, "room for all")
			case 1:
				require.Equal(t, held.Load(), used, "room for some")
			case 2:
				require.LessOrEqual(t, held.Load(), used)
				require.LessOrEqual(t, used, held.Load()+paid.Load())
			}
			_, ttl := raw(t, srv, key)
			require.Positive(t, ttl)
		}
	})
}
