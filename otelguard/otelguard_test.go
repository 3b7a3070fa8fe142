package otelguard

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
	"github.com/sallyport/sallyport/stores/memory"
)

// meters is a provider whose sums a test can read.
type meters struct {
	*sdk.MeterProvider
	reader *sdk.ManualReader
}

func newMeters() meters {
	reader := sdk.NewManualReader()
	return meters{sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithCardinalityLimit(-1)), reader}
}

// read returns the counters' sums by name and attributes, and the histogram's count.
func (m meters) read(t *testing.T) (sums map[string]int64, timed uint64, total float64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, m.reader.Collect(context.Background(), &all))
	sums = make(map[string]int64)
	for _, s := range all.ScopeMetrics {
		require.Equal(t, scope, s.Scope.Name)
		for _, metric := range s.Metrics {
			require.NotEmpty(t, metric.Unit)
			require.NotEmpty(t, metric.Description)
			switch data := metric.Data.(type) {
			case metricdata.Sum[int64]:
				require.True(t, data.IsMonotonic)
				for _, p := range data.DataPoints {
					sums[metric.Name+" "+p.Attributes.Encoded(attribute.DefaultEncoder())] += p.Value
				}
			case metricdata.Histogram[float64]:
				require.Equal(t, "sallyport.store.duration", metric.Name)
				require.Len(t, data.DataPoints, 1)
				timed, total = data.DataPoints[0].Count, data.DataPoints[0].Sum
			default:
				t.Fatalf("%s is a %T", metric.Name, data)
			}
		}
	}
	return sums, timed, total
}

func outcome(policy string, source stores.Source, allowed bool) handler.Outcome {
	return handler.Outcome{Policy: policy, Decision: stores.Decision{Source: source, Allowed: allowed}}
}

func TestSums(t *testing.T) {
	m := newMeters()
	observe, err := New(m)
	require.NoError(t, err)
	for _, v := range []handler.Verdict{
		{Allowed: true},
		{Allowed: true, Outcomes: []handler.Outcome{outcome("a", stores.Shared, true), outcome("b", stores.Shared, true)}, Elapsed: 250 * time.Microsecond},
		{Allowed: true, Outcomes: []handler.Outcome{outcome("a", stores.Local, true)}, Elapsed: 500 * time.Millisecond},
		{Allowed: true, Outcomes: []handler.Outcome{outcome("a", stores.Local, true)}, Elapsed: 2 * time.Microsecond},
		{Status: 429, Outcomes: []handler.Outcome{outcome("a", stores.Remembered, false)}},
		{Status: 429, Outcomes: []handler.Outcome{outcome("a", stores.Remembered, false)}},
		{Outcomes: []handler.Outcome{{Policy: "s", Mode: handler.Signal, Decision: stores.Decision{Source: stores.Local}}}},
		{Status: 403},
		{Status: 503, Outcomes: []handler.Outcome{outcome("a", stores.None, false)}},
		{Status: 499},
	} {
		observe(context.Background(), v)
	}
	sums, timed, total := m.read(t)
	require.Equal(t, map[string]int64{
		"sallyport.requests sallyport.result=allowed":                                                                        5,
		"sallyport.requests sallyport.result=refused":                                                                        3,
		"sallyport.requests sallyport.result=unavailable":                                                                    1,
		"sallyport.requests sallyport.result=hung_up":                                                                        1,
		"sallyport.decisions sallyport.mode=enforce,sallyport.policy=a,sallyport.result=allowed,sallyport.source=shared":     1,
		"sallyport.decisions sallyport.mode=enforce,sallyport.policy=b,sallyport.result=allowed,sallyport.source=shared":     1,
		"sallyport.decisions sallyport.mode=enforce,sallyport.policy=a,sallyport.result=allowed,sallyport.source=local":      2,
		"sallyport.decisions sallyport.mode=enforce,sallyport.policy=a,sallyport.result=refused,sallyport.source=remembered": 2,
		"sallyport.decisions sallyport.mode=signal,sallyport.policy=s,sallyport.result=refused,sallyport.source=local":       1,
		"sallyport.decisions sallyport.mode=enforce,sallyport.policy=a,sallyport.result=refused,sallyport.source=none":       1,
	}, sums)
	require.EqualValues(t, 2, timed, "of the shared store, and the wait in vain; not of memory")
	require.InDelta(t, 0.50025, total, 1e-9)
}

// A flood from ever new addresses, by many at once, makes no series and misses nothing.
func TestFlood(t *testing.T) {
	m := newMeters()
	observe, err := New(m)
	require.NoError(t, err)
	store, err := memory.New(memory.Config{})
	require.NoError(t, err)
	guard, err := handler.New(handler.Config{Store: store, ClientIP: handler.Direct(), Observe: observe, Policies: []handler.Policy{
		{Name: "each", Limit: stores.FixedWindow(5, time.Hour), Key: handler.ByIP()},
		{Name: "all", Limit: stores.FixedWindow(1000, time.Hour), Key: handler.Everyone()},
	}})
	require.NoError(t, err)
	h := guard.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	const clients, each = 16, 200
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			for i := range each {
				r := httptest.NewRequest("GET", "/", nil)
				r.RemoteAddr = fmt.Sprintf("198.51.%d.%d:1", c, i%50)
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
	group.Wait()
	sums, _, _ := m.read(t)
	require.LessOrEqual(t, len(sums), 8)
	require.EqualValues(t, 1000, sums["sallyport.requests sallyport.result=allowed"])
	require.EqualValues(t, clients*each-1000, sums["sallyport.requests sallyport.result=refused"])
	for name := range sums {
		require.NotContains(t, name, "198.51")
	}
}

// failing is a shared store that is away.
type failing struct{}

func (failing) Take(context.Context, stores.Hit) (stores.Decision, error) {
	return stores.Decision{}, fmt.Errorf("%w: away", stores.ErrUnavailable)
}

// In an outage every decision shows as local.
func TestOutageShows(t *testing.T) {
	m := newMeters()
	observe, err := New(m)
	require.NoError(t, err)
	guard, err := handler.New(handler.Config{Store: failing{}, Failover: failover.Config{}, KeySecret: []byte("a secret of tests"), ClientIP: handler.Direct(), Observe: observe,
		Policies: []handler.Policy{{Name: "each", Limit: stores.FixedWindow(5, time.Hour), Key: handler.ByIP()}}})
	require.NoError(t, err)
	h := guard.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 20 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	sums, _, _ := m.read(t)
	of := "sallyport.decisions sallyport.mode=enforce,sallyport.policy=each,sallyport.result=%s,sallyport.source=local"
	require.EqualValues(t, 5, sums[fmt.Sprintf(of, "allowed")])
	require.EqualValues(t, 15, sums[fmt.Sprintf(of, "refused")])
}

// A program that makes guards with ever new names does not fill the provider.
func TestManyPolicies(t *testing.T) {
	m := newMeters()
	observe, err := New(m)
	require.NoError(t, err)
	for i := range 3 * maxSeries {
		observe(context.Background(), handler.Verdict{Allowed: true, Outcomes: []handler.Outcome{outcome(fmt.Sprint(i), stores.Shared, true)}})
	}
	sums, _, _ := m.read(t)
	require.Len(t, sums, maxSeries+2) // the requests and the others
	require.EqualValues(t, 2*maxSeries, sums["sallyport.decisions sallyport.mode=enforce,sallyport.policy="+others+",sallyport.result=allowed,sallyport.source=shared"])
}

func TestNoProvider(t *testing.T) {
	_, err := New(nil)
	require.ErrorIs(t, err, stores.ErrInvalid)
}

func TestAllocations(t *testing.T) {
	observe, err := New(newMeters())
	require.NoError(t, err)
	v := handler.Verdict{Allowed: true, Outcomes: []handler.Outcome{outcome("a", stores.Shared, true)}, Elapsed: time.Millisecond}
	observe(context.Background(), v)
	// A slice of options for each counter, which escapes into the interface.
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { observe(context.Background(), v) }), 2.0)
}
