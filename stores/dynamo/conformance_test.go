package dynamo_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/dynamo"
	"github.com/sallyport/sallyport/stores/storetest"
)

func opener(client dynamo.Client) func(testing.TB) stores.Store {
	return func(t testing.TB) stores.Store {
		s, err := dynamo.New(dynamo.Config{Client: client, Table: dynamotest.Table})
		require.NoError(t, err)
		return s
	}
}

func TestConformance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storetest.Run(t, storetest.Backend{Open: opener(dynamotest.New(t).Client())})
	})
}

func TestConformanceOverANetwork(t *testing.T) {
	if testing.Short() || dynamo.RaceDetector {
		t.Skip("in real time")
	}
	t.Parallel()
	storetest.Run(t, storetest.Backend{Open: opener(dynamotest.New(t).Network(t))})
}

func TestConformanceOnDynalite(t *testing.T) {
	if testing.Short() || dynamo.RaceDetector {
		t.Skip("in real time")
	}
	t.Parallel()
	storetest.Run(t, storetest.Backend{Open: opener(dynamotest.Dynalite(t))})
}
