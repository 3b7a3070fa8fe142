package otelguard

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
)

// series is what tells the decisions of one sum from others.
type series struct {
	policy  string
	mode    handler.Mode
	source  stores.Source
	allowed bool
}

// maxSeries bounds what a program can take that makes guards with ever new names; a
// provider would keep a sum for each. A policy has at most a few.
const (
	maxSeries = 1000
	others    = "(others)"
)

// of returns the attributes of a decision. They are made once for each series.
func (o *observer) of(out *handler.Outcome) metric.MeasurementOption {
	s := series{out.Policy, out.Mode, out.Source, out.Allowed}
	o.mu.RLock()
	option := o.known[s]
	o.mu.RUnlock()
	if option != nil {
		return option
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.known) >= maxSeries {
		// They are few: as many as there are modes, sources and results.
		s.policy = others
	}
	if option = o.known[s]; option == nil {
		option = s.option()
		o.known[s] = option
	}
	return option
}

func (s series) option() metric.MeasurementOption {
	result := "refused"
	if s.allowed {
		result = "allowed"
	}
	return metric.WithAttributeSet(attribute.NewSet(
		policyKey.String(s.policy),
		modeKey.String(s.mode.String()),
		sourceKey.String(s.source.String()),
		resultKey.String(result),
	))
}
