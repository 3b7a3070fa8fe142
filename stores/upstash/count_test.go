package upstash_test

import (
	"fmt"
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

// TestExactlyTheQuota: 100 hits at once through ten instances, as often as not while
// the key is new.
func TestExactlyTheQuota(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		var instances [10]*upstash.Store
		for i := range instances {
			instances[i] = open(t, srv.URL)
		}
		for round := range 50 {
			hit := stores.Hit{Key: fmt.Sprint("round:", round), Limit: stores.FixedWindow(5, time.Minute)}
			start := make(chan struct{})
			var passed atomic.Int64
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() {
					<-start
					d, err := instances[i%10].Take(t.Context(), hit)
					if err != nil {
						t.Error(err)
					}
					if d.Allowed {
						passed.Add(1)
					} else if d.RetryAfter < time.Millisecond || d.RetryAfter > time.Minute {
						t.Errorf("RetryAfter %s", d.RetryAfter)
					}
				})
			}
			close(start)
			wg.Wait()
			require.EqualValues(t, 5, passed.Load(), "round %d", round)
			n, err := srv.Do("GET", hit.Key)
			require.NoError(t, err)
			require.Equal(t, "100", n, "one INCR for each hit")
		}
		require.Zero(t, srv.Count("GET"), "no look before the count")
		require.Zero(t, srv.Count("DEL"))
	})
}

// TestOffByOne: exactly the quota passes, and Remaining counts down to 0.
func TestOffByOne(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		for _, quota := range []int{1, 2, 5, 100} {
			s := open(t, srv.URL)
			hit := stores.Hit{Key: fmt.Sprint("quota:", quota), Limit: stores.FixedWindow(quota, time.Minute)}
			for i := range quota + 3 {
				d, err := s.Take(t.Context(), hit)
				require.NoError(t, err)
				require.Equal(t, i < quota, d.Allowed)
				require.Equal(t, max(0, quota-1-i), d.Remaining)
				require.Equal(t, stores.Shared, d.Source)
			}
		}
	})
}

// TestCommandsPerDecision: what Upstash would bill. Three commands while the window's
// end is not known, then two, on allowed and refused hits alike; one key's flood costs
// no more for each hit.
func TestCommandsPerDecision(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		s := open(t, srv.URL)
		hit := stores.Hit{Key: "k", Limit: stores.FixedWindow(5, time.Hour)}
		for i := range 50 {
			srv.Forget()
			_, err := s.Take(t.Context(), hit)
			require.NoError(t, err)
			want := 2
			if i == 0 {
				want = 3
			}
			require.Len(t, srv.Commands(), want, "hit %d", i)
			require.Equal(t, 1, srv.Requests())
		}
		srv.Forget()
		_, err := open(t, srv.URL).Take(t.Context(), hit)
		require.NoError(t, err)
		require.Len(t, srv.Commands(), 3, "another instance does not know the end")
		srv.Forget()
		_, err = s.Peek(t.Context(), hit)
		require.NoError(t, err)
		require.Len(t, srv.Commands(), 2)
		srv.Forget()
		require.NoError(t, s.Reset(t.Context(), hit))
		require.Len(t, srv.Commands(), 1)
	})
}

// TestCommandstats asks redis-server itself what was called.
func TestCommandstats(t *testing.T) {
	srv := upstashtest.NewReal(t)
	s := open(t, srv.URL)
	_, err := srv.Do("CONFIG", "RESETSTAT")
	require.NoError(t, err)
	for range 10 {
		_, err := s.Take(t.Context(), five)
		require.NoError(t, err)
	}
	info, err := srv.Do("INFO", "commandstats")
	require.NoError(t, err)
	for _, want := range []string{"cmdstat_incr:calls=10,", "cmdstat_pexpire:calls=10,", "cmdstat_pttl:calls=1,"} {
		require.Contains(t, info, want)
	}
	require.Equal(t, 3+1, strings.Count(info.(string), "cmdstat_"), "and the reset of the statistics:\n%s", info)
}

// TestQuotaMayChange: another quota applies at once and keeps the count.
func TestQuotaMayChange(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		s := open(t, srv.URL)
		take := func(quota int) stores.Decision {
			d, err := s.Take(t.Context(), stores.Hit{Key: "k", Limit: stores.FixedWindow(quota, time.Minute)})
			require.NoError(t, err)
			return d
		}
		require.True(t, take(2).Allowed)
		require.True(t, take(2).Allowed)
		require.False(t, take(2).Allowed)
		require.Equal(t, 6, take(10).Remaining, "the refusal that reached Redis counts as used: the one difference")
		require.False(t, take(3).Allowed)
	})
}

// TestPeekAndReset: looking changes nothing, and after a reset the quota is whole.
func TestPeekAndReset(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		s, other := open(t, srv.URL), open(t, srv.URL)
		hit := stores.Hit{Key: "k", Limit: stores.FixedWindow(2, time.Hour)}
		d, err := s.Peek(t.Context(), hit)
		require.NoError(t, err)
		require.Equal(t, stores.Decision{Allowed: true, Remaining: 2}, d)
		require.NoError(t, s.Reset(t.Context(), hit), "a key that is not there is no error")
		for range 4 {
			_, err = s.Take(t.Context(), hit)
			require.NoError(t, err)
		}
		before, err := srv.Do("GET", "k")
		require.NoError(t, err)
		for range 3 {
			d, err = other.Peek(t.Context(), hit)
			require.NoError(t, err)
			require.False(t, d.Allowed)
			require.Zero(t, d.Remaining)
		}
		after, err := srv.Do("GET", "k")
		require.NoError(t, err)
		require.Equal(t, before, after)

		require.NoError(t, other.Reset(t.Context(), hit))
		d, err = s.Take(t.Context(), hit)
		require.NoError(t, err)
		require.True(t, d.Allowed)
		require.Equal(t, 1, d.Remaining)
		require.Equal(t, time.Hour, d.ResetAfter, "the window starts anew")
		d, err = s.Peek(t.Context(), stores.Hit{Key: "k", Limit: hit.Limit, Cost: 2})
		require.NoError(t, err)
		require.False(t, d.Allowed)
		require.Equal(t, 1, d.Remaining)
		require.Positive(t, d.RetryAfter)
	})
}

// TestForeignKey: a key that something else uses is a fault of that key alone.
func TestForeignKey(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		s := open(t, srv.URL)
		for _, set := range [][]any{{"SET", secretKey, "a word"}, {"RPUSH", secretKey + "l", "x"}, {"SET", secretKey + "m", "9223372036854775807"}} {
			_, err := srv.Do(set...)
			require.NoError(t, err)
			hit := stores.Hit{Key: set[1].(string), Limit: five.Limit}
			_, err = s.Take(t.Context(), hit)
			ofKey.check(t, err)
			if set[0] == "RPUSH" {
				_, err = s.Peek(t.Context(), hit)
				ofKey.check(t, err)
			}
			require.NoError(t, s.Reset(t.Context(), hit))
			d, err := s.Take(t.Context(), hit)
			require.NoError(t, err)
			require.True(t, d.Allowed)
		}
	})
}
