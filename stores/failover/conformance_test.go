package failover

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/storetest"
)

// Several instances over one shared store that is well.
func TestConformance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		storetest.Run(t, storetest.Backend{Open: func(testing.TB) stores.Store {
			s, err := New(f, Config{})
			require.NoError(t, err)
			return s
		}})
	})
}
