package dynamo

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
)

// Two instances whose clocks differ, uncorrected, ten hits a second for two and a half minutes:
// what they admit together stays within one window of the limit.
func TestSkewedInstances(t *testing.T) {
	for _, skew := range []time.Duration{0, 500 * time.Millisecond, -500 * time.Millisecond, 2 * time.Second, -2 * time.Second, 10 * time.Second, -10 * time.Second} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := dynamotest.New(t)
				server.SetFault(dynamotest.Fault{Do: dynamotest.NoDate()})
				good, _ := offsetStore(t, server, 0)
				skewed, _ := offsetStore(t, server, skew)
				h := hit("k", 60, time.Minute)
				allowed := 0
				for i := range 1500 {
					s := good
					if i%2 == 1 {
						s = skewed
					}
					if take(t, s, h).Allowed {
						allowed++
					}
					time.Sleep(100 * time.Millisecond)
				}
				require.LessOrEqual(t, allowed, 4*60)
				require.GreaterOrEqual(t, allowed, 2*60)
			})
		})
	}
}

// With the Date header, any skew costs little: the clock that is off is corrected after two
// answers. Until then it can forget a window or leave an end far ahead, which others
// then shorten.
func TestInstancesFarOff(t *testing.T) {
	for _, skew := range []time.Duration{-48 * time.Hour, -time.Hour, time.Hour, 48 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := dynamotest.New(t)
				good, _ := offsetStore(t, server, 0)
				bad, _ := offsetStore(t, server, skew)
				h := hit("k", 60, time.Minute)
				allowed := 0
				for i := range 1500 {
					s := good
					if i%2 == 1 {
						s = bad
					}
					d := take(t, s, h)
					require.LessOrEqual(t, d.RetryAfter, time.Minute)
					if d.Allowed {
						allowed++
					}
					time.Sleep(100 * time.Millisecond)
				}
				require.LessOrEqual(t, allowed, 5*60)
				require.GreaterOrEqual(t, allowed, 2*60)
			})
		})
	}
}

// A window that a clock far ahead left behind would shut a client out for days. It is
// shortened to one window from now, with its count kept, and waiting as told works.
func TestEndThatNobodyMeantIsShortened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		s, h := newStore(t, server.Client()), hit("k", 5, time.Minute)
		farAhead := time.Now().Add(48 * time.Hour).UnixMilli()

		server.Put(t, h.Key, item(5, farAhead))
		peeked, err := s.Peek(t.Context(), h)
		require.NoError(t, err)
		require.Equal(t, stores.Decision{RetryAfter: time.Minute, ResetAfter: time.Minute}, peeked)
		require.Equal(t, peeked, take(t, s, h))
		require.Equal(t, 2, server.Calls("UpdateItem"))
		w, _ := stored(t, server, h.Key)
		require.Equal(t, window{5, time.Now().Add(time.Minute).UnixMilli()}, w)
		require.Contains(t, server.Item(t, h.Key), TTLAttribute)

		// Refused all the same, by everybody, until the window is over.
		time.Sleep(time.Minute - time.Millisecond)
		for range 20 {
			require.False(t, take(t, s, h).Allowed)
			require.False(t, take(t, newStore(t, server.Client()), h).Allowed)
		}
		time.Sleep(time.Millisecond)
		require.True(t, take(t, s, h).Allowed)

		// Without a Date header it can't be known whose clock is wrong, so nothing moves.
		server.Put(t, h.Key, item(5, farAhead))
		server.SetFault(dynamotest.Fault{Do: dynamotest.NoDate()})
		require.Equal(t, time.Minute, take(t, s, h).RetryAfter)
		w, _ = stored(t, server, h.Key)
		require.Equal(t, farAhead, w.end)
	})
}

// An end that honest clocks can have written stays where it is: instances that could
// shorten each other's windows would have none.
func TestSmallSkewShortensNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		ahead, _ := offsetStore(t, server, 1900*time.Millisecond)
		behind, _ := offsetStore(t, server, -1900*time.Millisecond)
		h := hit("k", 3, time.Second)
		allowed := 0
		for i := range 1500 {
			s := ahead
			if i%2 == 1 {
				s = behind
			}
			d := take(t, s, h)
			require.LessOrEqual(t, d.RetryAfter, time.Second)
			if d.Allowed {
				allowed++
			}
			time.Sleep(10 * time.Millisecond)
		}
		require.LessOrEqual(t, allowed, 16*3)
		require.GreaterOrEqual(t, allowed, 14*3)
	})
}

// An end that can't be shortened is refused all the same, without going on for ever.
func TestEndThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		s, h := newStore(t, server.Client()), hit("k", 5, time.Minute)
		server.Put(t, h.Key, item(5, time.Now().Add(48*time.Hour).UnixMilli()))
		end := strconv.FormatInt(time.Now().Add(48*time.Hour).UnixMilli(), 10)
		server.SetFault(dynamotest.Fault{Do: dynamotest.Raw(400, "application/x-amz-json-1.0",
			`{"__type":"ConditionalCheckFailedException","Item":{"n":{"N":"5"},"e":{"N":"`+end+`"}}}`)})
		require.Equal(t, stores.Decision{RetryAfter: time.Minute, ResetAfter: time.Minute}, take(t, s, h))
		require.Equal(t, 2, server.Calls(""))
	})
}
