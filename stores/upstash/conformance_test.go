package upstash_test

import (
	"testing"
	"testing/synctest"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/storetest"
	"github.com/sallyport/sallyport/stores/upstash"
)

// TestConformanceInABubble runs the contract over the embedded Redis, whose keys expire
// by the bubble's clock, as the stores' known ends do.
func TestConformanceInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := upstashtest.NewBubble(t)
		storetest.Run(t, storetest.Backend{Open: func(t testing.TB) stores.Store {
			return open(t, srv.URL, func(c *upstash.Config) { c.Transport = srv.Transport() })
		}})
	})
}

// TestConformanceOnRedis runs the contract over sockets, a real redis-server, and in
// real time.
func TestConformanceOnRedis(t *testing.T) {
	if upstash.RaceDetector {
		t.Skip("in real time: without the race detector")
	}
	srv := upstashtest.NewReal(t)
	storetest.Run(t, storetest.Backend{Open: func(t testing.TB) stores.Store { return open(t, srv.URL) }})
}
