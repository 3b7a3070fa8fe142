package otelguard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/otelguard"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

func ExampleNew() {
	reader := sdk.NewManualReader() // a program has a periodic one, with an exporter
	observe, err := otelguard.New(sdk.NewMeterProvider(sdk.WithReader(reader)))
	if err != nil {
		panic(err)
	}
	counters, err := memory.New(memory.Config{})
	if err != nil {
		panic(err)
	}
	guard, err := handler.New(handler.Config{
		Store:    counters,
		ClientIP: handler.Direct(),
		Observe:  observe,
		Policies: []handler.Policy{{Name: "contact-form", Limit: stores.FixedWindow(5, 10*time.Minute), Key: handler.ByIP()}},
	})
	if err != nil {
		panic(err)
	}
	contact := guard.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 8 {
		contact.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/contact", nil))
	}

	var metrics metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &metrics); err != nil {
		panic(err)
	}
	for _, m := range metrics.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "sallyport.requests" {
			for _, p := range sum.DataPoints {
				result, _ := p.Attributes.Value("sallyport.result")
				fmt.Println(result.AsString(), p.Value)
			}
		}
	}
	// Unordered output:
	// allowed 5
	// refused 3
}
