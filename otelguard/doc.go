// Package otelguard reports what a guard decides as OpenTelemetry metrics. It is a module
// of its own, so that the kit itself does not need OpenTelemetry.
//
//	observe, err := otelguard.New(provider)
//	guard, err := handler.New(handler.Config{Observe: observe, ...})
//
// The instruments, of the scope github.com/sallyport/sallyport/otelguard:
//
//   - sallyport.requests, a counter of {request}: every Verdict. sallyport.result is
//     "allowed" (the handler runs), "refused" (429, 403, 413, 400), "unavailable" (503) or
//     "hung_up".
//   - sallyport.decisions, a counter of {decision}: every policy that decided, by
//     sallyport.policy; sallyport.result, "allowed" or "refused", in whatever mode;
//     sallyport.mode, such as "enforce"; and sallyport.source, who decided: "shared",
//     "local", "remembered" or "none".
//   - sallyport.store.duration, a histogram of seconds: the time in the store, of requests
//     for which a shared store was asked.
//
// OpenTelemetry's semantic conventions have no names for rate limits (v1.44 knows those of
// ASP.NET alone), so these are the kit's own.
//
// No key, address or path is reported: each would be a series of its own, and an attacker
// chooses them. Requests add to sums and make no series, however many come.
//
// On Lambda and on Cloud Run an instance is frozen between requests, and with it the
// SDK's periodic reader: have the handler call the provider's ForceFlush, or use
// lambda.EMF, which needs neither a reader nor an exporter.
package otelguard
