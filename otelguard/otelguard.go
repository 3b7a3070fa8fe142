package otelguard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
)

const scope = "github.com/sallyport/sallyport/otelguard"

// The keys of the attributes.
const (
	policyKey = attribute.Key("sallyport.policy")
	resultKey = attribute.Key("sallyport.result")
	modeKey   = attribute.Key("sallyport.mode")
	sourceKey = attribute.Key("sallyport.source")
)

// New returns a function for [handler.Config].Observe. It adds to the instruments that it
// makes of the provider; a nil provider and instruments that can't be made are errors.
// The function may be shared by guards and is safe for concurrent use. It does what the
// provider's instruments do: those of OpenTelemetry's SDK add to sums in memory, and
// export later.
func New(provider metric.MeterProvider) (func(context.Context, handler.Verdict), error) {
	if provider == nil {
		return nil, fmt.Errorf("%w: otelguard: no meter provider", stores.ErrInvalid)
	}
	meter := provider.Meter(scope)
	requests, err1 := meter.Int64Counter("sallyport.requests",
		metric.WithUnit("{request}"), metric.WithDescription("Requests that a guard decided."))
	decisions, err2 := meter.Int64Counter("sallyport.decisions",
		metric.WithUnit("{decision}"), metric.WithDescription("Decisions of policies, by who made them."))
	duration, err3 := meter.Float64Histogram("sallyport.store.duration",
		metric.WithUnit("s"), metric.WithDescription("Time in the shared store, for a request."),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("otelguard: %w", err)
	}
	o := &observer{requests: requests, decisions: decisions, duration: duration, known: make(map[series]metric.MeasurementOption)}
	for _, result := range []string{"allowed", "refused", "unavailable", "hung_up"} {
		o.results = append(o.results, metric.WithAttributeSet(attribute.NewSet(resultKey.String(result))))
	}
	return o.observe, nil
}

type observer struct {
	requests, decisions metric.Int64Counter
	duration            metric.Float64Histogram
	results             []metric.MeasurementOption // by result

	mu    sync.RWMutex
	known map[series]metric.MeasurementOption
}

// The places in results.
const (
	allowed = iota
	refused
	unavailable
	hungUp
)

func (o *observer) observe(ctx context.Context, v handler.Verdict) {
	o.requests.Add(ctx, 1, o.results[result(&v)])
	for i := range v.Outcomes {
		o.decisions.Add(ctx, 1, o.of(&v.Outcomes[i]))
	}
	if askedShared(&v) {
		o.duration.Record(ctx, v.Elapsed.Seconds())
	}
}

func result(v *handler.Verdict) int {
	switch v.Status {
	case 0:
		return allowed
	case http.StatusServiceUnavailable:
		return unavailable
	case 499: // the guard's word for a caller who hung up
		return hungUp
	}
	return refused
}

// askedShared tells whether Elapsed is a shared store's time: it decided, or it kept the
// guard waiting in vain. Memory takes microseconds, which would hide it.
func askedShared(v *handler.Verdict) bool {
	for i := range v.Outcomes {
		if v.Outcomes[i].Source == stores.Shared {
			return true
		}
	}
	return v.Elapsed >= time.Millisecond
}
