package memory_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
	"github.com/sallyport/sallyport/stores/storetest"
)

func TestConformance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := memory.New(memory.Config{})
		require.NoError(t, err)
		storetest.Run(t, storetest.Backend{Open: func(testing.TB) stores.Store { return s }})
	})
}

// In real time too, with subtests, as a newcomer's first run shows them.
func TestConformanceInRealTime(t *testing.T) {
	if memory.RaceDetector {
		t.Skip("in real time: without the race detector")
	}
	s, err := memory.New(memory.Config{})
	require.NoError(t, err)
	storetest.Run(t, storetest.Backend{Open: func(testing.TB) stores.Store { return s }})
}
