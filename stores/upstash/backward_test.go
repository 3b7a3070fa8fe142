package upstash_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
)

// TestCountGoesBackwards: a Reset elsewhere, or an eviction, is believed, forgotten and
// reported once, however many keys it meets.
func TestCountGoesBackwards(t *testing.T) {
	onBoth(t, func(t *testing.T, srv *upstashtest.Server) {
		var log journal
		s := open(t, srv.URL, logTo(&log))
		for i := range 20 {
			hit := stores.Hit{Key: fmt.Sprint(secretKey, i), Limit: stores.FixedWindow(5, time.Hour)}
			for range 7 {
				_, err := s.Take(t.Context(), hit)
				require.NoError(t, err)
			}
			_, err := srv.Do("DEL", hit.Key)
			require.NoError(t, err)
			for n := range 5 {
				if i%2 == 0 && n == 0 { // others were faster
					_, err := open(t, srv.URL).Take(t.Context(), hit)
					require.NoError(t, err)
					continue
				}
				d, err := s.Take(t.Context(), hit)
				require.NoError(t, err)
				require.True(t, d.Allowed)
				require.Equal(t, 4-n, d.Remaining)
			}
			d, err := s.Take(t.Context(), hit)
			require.NoError(t, err)
			require.False(t, d.Allowed)
		}
		require.Equal(t, 1, strings.Count(log.String(), "went backwards"), log.String())
		noSecret(t, log.String())

		// Its own Reset is no news.
		log = journal{}
		hit := stores.Hit{Key: "own", Limit: five.Limit}
		s = open(t, srv.URL, logTo(&log))
		for range 3 {
			for range 3 {
				_, err := s.Take(t.Context(), hit)
				require.NoError(t, err)
			}
			require.NoError(t, s.Reset(t.Context(), hit))
		}
		require.Empty(t, log.String())
	})
}

// TestResetUnderAHit: a hit that was on its way when this instance reset its key is
// executed after the DEL. That its count is smaller than the last one is no news, and
// what it learned is right.
func TestResetUnderAHit(t *testing.T) {
	var log journal
	srv := upstashtest.NewScripted(t)
	s := open(t, srv.URL, logTo(&log))
	for range 3 {
		_, err := s.Take(t.Context(), five)
		require.NoError(t, err)
	}
	came, goOn := make(chan struct{}), make(chan struct{})
	srv.Script(func(x *upstashtest.Exchange) bool {
		close(came)
		<-goOn
		return upstashtest.Good()(x)
	}, upstashtest.Good())
	var wg sync.WaitGroup
	wg.Go(func() {
		d, err := s.Take(t.Context(), five)
		if err != nil || d.Remaining != 4 {
			t.Errorf("%+v, %v", d, err)
		}
	})
	<-came
	err := s.Reset(t.Context(), five)
	close(goOn)
	wg.Wait()
	require.NoError(t, err)
	require.Empty(t, log.String())
	for i := range 6 {
		d, err := s.Take(t.Context(), five)
		require.NoError(t, err)
		require.Equal(t, max(0, 3-i), d.Remaining)
	}
	require.Empty(t, log.String())
}
