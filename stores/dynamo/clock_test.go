package dynamo

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
)

// offsetStore returns an instance whose local clock is off by d.
func offsetStore(t testing.TB, server *dynamotest.Server, d time.Duration) (*Store, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	s, err := New(Config{Client: server.Client(), Table: dynamotest.Table, Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	s.clock.read = func() time.Time { return time.Now().Add(d) }
	return s, log
}

func TestClockIsCorrectedByTheDateHeader(t *testing.T) {
	for _, tt := range []struct {
		off     time.Duration
		correct bool
	}{
		{0, false}, {time.Second, false}, {-time.Second, false}, {1900 * time.Millisecond, false}, {-1900 * time.Millisecond, false},
		{3100 * time.Millisecond, true}, {-3100 * time.Millisecond, true}, {5 * time.Minute, true}, {-5 * time.Minute, true},
		{48 * time.Hour, true}, {-48 * time.Hour, true}, {20 * 365 * 24 * time.Hour, true},
	} {
		t.Run(tt.off.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := dynamotest.New(t)
				s, log := offsetStore(t, server, tt.off)
				for range 10 {
					take(t, s, hit("k", 100, time.Hour))
					time.Sleep(370 * time.Millisecond) // Date shows whole seconds
				}
				if tt.correct {
					require.InDelta(t, -tt.off.Milliseconds(), s.clock.offset.Load(), 1000)
				} else {
					require.Zero(t, s.clock.offset.Load())
				}
				require.Equal(t, tt.correct, strings.Contains(log.String(), "clock"))
				require.LessOrEqual(t, strings.Count(log.String(), "\n"), 1, "changes of state, not requests: %s", log)
			})
		})
	}
}

// A clock that is mended is trusted again, and both changes are told once.
func TestClockHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		s, log := offsetStore(t, server, time.Hour)
		h := hit("k", 100, time.Minute)
		for range 5 {
			take(t, s, h)
		}
		require.NotZero(t, s.clock.offset.Load())
		time.Sleep(2 * logPause)
		s.clock.read = time.Now
		for range 5 {
			take(t, s, h)
		}
		require.Zero(t, s.clock.offset.Load())
		require.Equal(t, 2, strings.Count(log.String(), "\n"), log)
		require.Contains(t, log.String(), "again")
	})
}

// A clock that goes to and fro does not fill the log.
func TestFlappingClockIsToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		s, log := offsetStore(t, server, 0)
		changes, last := 0, int64(0)
		for i := range 400 {
			off := time.Duration(i/4%2) * time.Hour
			s.clock.read = func() time.Time { return time.Now().Add(off) }
			take(t, s, hit("k", 1000, time.Hour))
			if now := s.clock.offset.Load(); now != last {
				changes, last = changes+1, now
			}
			time.Sleep(100 * time.Millisecond)
		}
		require.Greater(t, changes, 50)
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log)
	})
}

// A Date that lies now and then moves nothing: a now that jumps would forget
// counts. One that lies always is what all instances go by, and the limit holds.
func TestWrongDate(t *testing.T) {
	for name, lie := range map[string]func(i int) dynamotest.Manner{
		"once": func(i int) dynamotest.Manner {
			return dynamotest.Date(map[bool]time.Duration{true: 48 * time.Hour}[i == 3])
		},
		"every other": func(i int) dynamotest.Manner { return dynamotest.Date(time.Duration(i%2) * 48 * time.Hour) },
		"wandering":   func(i int) dynamotest.Manner { return dynamotest.Date(time.Duration(i*i) * time.Hour) },
		"none":        func(int) dynamotest.Manner { return dynamotest.NoDate() },
		"always":      func(int) dynamotest.Manner { return dynamotest.Date(-48 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := dynamotest.New(t)
				s, log := offsetStore(t, server, 0)
				h := hit("k", 5, time.Hour)
				if name == "always" { // known from other keys
					server.SetFault(dynamotest.Fault{Do: lie(0)})
					take(t, s, hit("other", 5, time.Hour))
					take(t, s, hit("other", 5, time.Hour))
				}
				allowed := 0
				for i := range 50 {
					server.ClearFaults()
					server.SetFault(dynamotest.Fault{Do: lie(i)})
					if take(t, s, h).Allowed {
						allowed++
					}
				}
				require.Equal(t, 5, allowed)
				require.LessOrEqual(t, strings.Count(log.String(), "\n"), 1)
			})
		})
	}
}

// A call that took long says nothing of the clock, were it frozen for an hour meanwhile.
func TestSlowAnswersAreNoSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		s, log := offsetStore(t, server, 0)
		server.SetFault(dynamotest.Fault{Do: dynamotest.Slow(2900 * time.Millisecond)})
		for range 5 {
			take(t, s, hit("k", 100, time.Hour))
		}
		began := time.Now()
		time.Sleep(time.Hour)
		require.True(t, s.clock.observe(t.Context(), time.Now(), began))
		require.True(t, s.clock.observe(t.Context(), began, began))
		require.Zero(t, s.clock.offset.Load())
		require.Empty(t, log.String())
	})
}
