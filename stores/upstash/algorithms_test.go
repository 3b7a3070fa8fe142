package upstash_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

// inBubble opens instances over one database whose time is the bubble's.
func inBubble(t *testing.T, f func(t *testing.T, srv *upstashtest.Server, s *upstash.Store)) {
	synctest.Test(t, func(t *testing.T) {
		srv := upstashtest.NewBubble(t)
		f(t, srv, open(t, srv.URL, func(c *upstash.Config) { c.Transport = srv.Transport() }))
	})
}

// TestForeignState: what is no state of the algorithm is a fault of that key, for each
// step, and stays as it is.
func TestForeignState(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		s := open(t, srv.URL)
		for _, limit := range others {
			hit := stores.Hit{Key: secretKey, Limit: limit}
			own := "s"
			switch limit.Algorithm {
			case stores.Fixed:
				own = "f"
			case stores.Token, stores.Leaky:
				own = "b"
			case stores.Log:
				own = "l"
			}
			values := []string{"", "5", "a word", own, own + " ", own + " 1", own + " 1 2 3", own + " 1 2 3 4 5", own + " -1 2 3 4", own + " 1 2 3 4 ", " " + own + " 1 2 3 4",
				own + " 1.5 2 3 4", own + " 1e3 2 3 4", own + " 0x1 2 3 4", own + " 1 2 3 4\x00", own + " 1 2 3 4\n", "x 1 2 3 4", own + "  1 2 3 4"}
			for other := range strings.SplitSeq("f 1 2 3 4,s 1 2 3 4,b 1 2 3 4,l 0 ,l 0 1798000000123456", ",") {
				if other[:1] != own {
					values = append(values, other)
				}
			}
			if own == "l" {
				values = append(values, "l 0 179800000012345", "l 0 17980000001234567", "l 0 179800000012345a", "l 0 1798000000123456 ", "l -1 1798000000123456", "l  1798000000123456")
			}
			for _, value := range values {
				_, err := srv.Do("SET", secretKey, value, "PX", 60000)
				require.NoError(t, err)
				for _, err := range everyStep(t, s, hit) {
					ofKey.check(t, err)
				}
				got, ttl := raw(t, srv, secretKey)
				require.Equal(t, value, got, limit)
				require.Positive(t, ttl)
			}
			for _, create := range [][]any{{"RPUSH", secretKey, "x"}, {"HSET", secretKey, "x", "y"}, {"ZADD", secretKey, 1, "x"}, {"SADD", secretKey, "x"}} {
				_, err := srv.Do("DEL", secretKey)
				require.NoError(t, err)
				_, err = srv.Do(create...)
				require.NoError(t, err)
				for _, err := range everyStep(t, s, hit) {
					ofKey.check(t, err)
				}
			}
			require.NoError(t, s.Reset(t.Context(), hit), "which heals")
			d, err := s.Take(t.Context(), hit)
			require.NoError(t, err)
			require.True(t, d.Allowed)
			require.NoError(t, s.Reset(t.Context(), hit))
		}
	})
}

// everyStep returns what came of each step that reads the key.
func everyStep(t *testing.T, s *upstash.Store, hit stores.Hit) []error {
	_, taken := s.Take(t.Context(), hit)
	_, owing := s.TakeOwing(t.Context(), hit, 1, time.Second)
	_, peeked := s.Peek(t.Context(), hit)
	return []error{taken, owing, peeked, s.Refund(t.Context(), hit)}
}

// TestLostExpiry: a key whose expiry somebody took away gets one with the next hit that
// writes, and shuts nobody out for longer than its state says.
func TestLostExpiry(t *testing.T) {
	for _, limit := range others {
		t.Run(limit.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, srv *upstashtest.Server, s *upstash.Store) {
				hit := stores.Hit{Key: "k", Limit: limit}
				for i := range 6 {
					d, err := s.Take(t.Context(), hit)
					require.NoError(t, err)
					require.Equal(t, i < 5, d.Allowed)
				}
				_, err := srv.Do("PERSIST", "k")
				require.NoError(t, err)
				d, err := s.Take(t.Context(), hit)
				require.NoError(t, err)
				require.False(t, d.Allowed)
				time.Sleep(d.RetryAfter - time.Millisecond)
				d, err = s.Take(t.Context(), hit)
				require.NoError(t, err)
				require.False(t, d.Allowed, "a millisecond early")
				time.Sleep(d.RetryAfter)
				d, err = s.Take(t.Context(), hit)
				require.NoError(t, err)
				require.True(t, d.Allowed)
				_, ttl := raw(t, srv, "k")
				require.Positive(t, ttl)
				time.Sleep(d.ResetAfter + 2*time.Millisecond)
				value, _ := raw(t, srv, "k")
				require.Empty(t, value, "nothing stays")
			})
		})
	}
}

// TestRefusedHitsWriteNothing: however many there are, and they move nothing.
func TestRefusedHitsWriteNothing(t *testing.T) {
	for _, limit := range others {
		t.Run(limit.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, srv *upstashtest.Server, s *upstash.Store) {
				hit := stores.Hit{Key: "k", Limit: limit}
				for range 6 { // the sixth starts the block, if there is one
					_, err := s.Take(t.Context(), hit)
					require.NoError(t, err)
				}
				d, err := s.Peek(t.Context(), hit)
				require.NoError(t, err)
				wait, begun := d.RetryAfter, time.Now()
				value, _ := raw(t, srv, "k")
				for range 200 {
					time.Sleep(wait / 201)
					d, err := s.Take(t.Context(), hit)
					require.NoError(t, err)
					require.False(t, d.Allowed)
					got, _ := raw(t, srv, "k")
					require.Equal(t, value, got)
				}
				time.Sleep(wait - time.Since(begun))
				d, err = s.Take(t.Context(), hit)
				require.NoError(t, err)
				require.True(t, d.Allowed, "hammering moved nothing")
			})
		})
	}
}

// TestLogOfOneMoment: stamps that are alike are as many as they are, and what a log takes
// up is bounded by its quota, however it is hammered.
func TestLogOfOneMoment(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *upstashtest.Server, s *upstash.Store) {
		hit := stores.Hit{Key: "k", Limit: stores.SlidingLog(1000, time.Hour), Cost: 7}
		size := func() int {
			value, _ := raw(t, srv, "k")
			return len(value)
		}
		for i := 1; i <= 142; i++ {
			d, err := s.Take(t.Context(), hit)
			require.NoError(t, err)
			require.True(t, d.Allowed)
			require.Equal(t, 1000-7*i, d.Remaining)
		}
		for range 20 {
			_, err := s.Take(t.Context(), hit)
			require.NoError(t, err)
		}
		require.Less(t, size(), 16*1000+32)
		for round := range 10 {
			time.Sleep(20 * time.Minute)
			for range 20 {
				_, err := s.Take(t.Context(), costing(hit, 1+round*13))
				require.NoError(t, err)
				_, err = s.TakeOwing(t.Context(), costing(hit, 1), 100, time.Duration(1+round)*time.Minute)
				require.NoError(t, err)
			}
			require.LessOrEqual(t, size(), 16*1000+32)
		}
		time.Sleep(time.Hour)
		d, err := s.Take(t.Context(), costing(hit, 1000))
		require.NoError(t, err)
		require.True(t, d.Allowed)
		d, err = s.Take(t.Context(), costing(hit, 1))
		require.NoError(t, err)
		require.False(t, d.Allowed)
		require.Equal(t, time.Hour, d.RetryAfter)
	})
}

// TestNoCallersClock: the request for a hit says nothing of the time, so instances whose
// clocks differ ask the same; and decisions follow the server's clock, whatever it shows.
func TestNoCallersClock(t *testing.T) {
	hits := mixed("")
	inBubble(t, func(t *testing.T, srv *upstashtest.Server, s *upstash.Store) {
		var bodies []string
		for _, pause := range []time.Duration{0, 0, 10 * time.Second, 90 * 24 * time.Hour} {
			time.Sleep(pause)
			srv.Forget()
			for _, hit := range hits {
				for _, cost := range []int{1, 3} {
					_, err := s.Take(t.Context(), costing(hit, cost))
					require.NoError(t, err)
				}
				_, err := s.TakeOwing(t.Context(), hit, 1, time.Minute)
				require.NoError(t, err)
				require.NoError(t, s.Refund(t.Context(), hit))
				require.NoError(t, s.Reset(t.Context(), hit))
			}
			bodies = append(bodies, fmt.Sprint(srv.Commands()))
		}
		bodies = bodies[1:] // the first brought the script along
		require.Equal(t, bodies[0], bodies[1])
		require.Equal(t, bodies[0], bodies[2])
	})

	for _, ahead := range []time.Duration{-10 * time.Second, 10 * time.Second, -5 * 365 * 24 * time.Hour, 100 * 365 * 24 * time.Hour} {
		srv := upstashtest.New(t)
		at := time.Now().Add(ahead)
		srv.Mini().SetTime(at)
		one, other := open(t, srv.URL), open(t, srv.URL)
		for _, limit := range others {
			hit := stores.Hit{Key: limit.String(), Limit: limit}
			for i := range 3 {
				d, err := one.Take(t.Context(), hit)
				require.NoError(t, err)
				require.Equal(t, 4-2*i, d.Remaining)
				if i < 2 {
					d, err = other.Take(t.Context(), hit)
					require.NoError(t, err)
					require.Equal(t, 3-2*i, d.Remaining)
				}
			}
			d, err := other.Take(t.Context(), hit)
			require.NoError(t, err)
			require.False(t, d.Allowed)
			want := limit.Window
			switch {
			case limit.Block > 0:
				want = limit.Block
			case limit.Algorithm == stores.Sliding: // in the next window a fifth has to slide out
				want += limit.Window / 5
			case limit.Algorithm != stores.Log:
				want /= 5
			}
			require.Equal(t, want, d.RetryAfter, limit)
		}
	}
}

// TestServerClockSetBack: nobody is told to wait for longer than windows last, and when the
// clock has caught up all is as it was.
func TestServerClockSetBack(t *testing.T) {
	for _, limit := range others {
		if limit.Algorithm != stores.Fixed && limit.Algorithm != stores.Sliding {
			continue // a bucket and a log tell what their state says; package failover bounds it
		}
		srv := upstashtest.New(t)
		at := time.Now()
		srv.Mini().SetTime(at)
		s := open(t, srv.URL)
		hit := stores.Hit{Key: "k", Limit: limit, Cost: 5}
		take := func(allowed bool) stores.Decision {
			d, err := s.Take(t.Context(), hit)
			require.NoError(t, err)
			require.Equal(t, allowed, d.Allowed)
			return d
		}
		take(true)
		srv.Mini().SetTime(at.Add(-24 * time.Hour))
		d := take(false)
		require.LessOrEqual(t, d.RetryAfter, 2*limit.Window)
		require.LessOrEqual(t, d.ResetAfter, 2*limit.Window)
		srv.Mini().SetTime(at.Add(2 * limit.Window))
		take(true)
	}
}

// TestCertain: what an answer says of times is right within the exchange and a
// millisecond, however long the exchange took. So nobody who reckons from before it and
// takes off a millisecond remembers a refusal for too long.
func TestCertain(t *testing.T) {
	for _, limit := range others {
		inBubble(t, func(t *testing.T, srv *upstashtest.Server, s *upstash.Store) {
			hit := stores.Hit{Key: "k", Limit: limit, Cost: 2}
			for range 2 {
				_, certain, err := s.TakeCertain(t.Context(), hit)
				require.NoError(t, err)
				require.True(t, certain)
				time.Sleep(1234567 * time.Nanosecond)
			}
			srv.SetDelay(400 * time.Millisecond)
			sent := time.Now()
			d, certain, err := s.TakeCertain(t.Context(), hit)
			require.NoError(t, err)
			require.False(t, d.Allowed)
			require.True(t, certain)
			require.GreaterOrEqual(t, time.Since(sent), 400*time.Millisecond)
			srv.SetDelay(0)
			time.Sleep(time.Until(sent.Add(d.RetryAfter - time.Millisecond)))
			peeked, err := s.Peek(context.WithoutCancel(t.Context()), hit)
			require.NoError(t, err)
			require.False(t, peeked.Allowed, limit)
			time.Sleep(time.Millisecond)
			peeked, err = s.Peek(t.Context(), hit)
			require.NoError(t, err)
			require.True(t, peeked.Allowed, limit)
		})
	}
}
