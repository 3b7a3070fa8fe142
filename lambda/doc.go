// Package lambda puts a guard of package handler around AWS Lambda handlers.
//
//	lambda.Start(lambda.HTTPAPI(guard, handle))
//
// [HTTPAPI], [FunctionURL], [RESTAPI] and [ALB] wrap a handler of that event and its
// answer; [HTTP] runs any http.Handler behind all four, and [Raw] guards a function that
// other events arrive at too. [EMF] makes CloudWatch metrics of what the guard decides.
// The function behind a wrapper sees the event as it came. A refusal is an answer of status 429 (or 403,
// 503), never an error, which API Gateway would turn into a 502. All counting is
// done before the answer is returned, since nothing runs while Lambda keeps the
// instance frozen. Everything here is safe for concurrent use: an instance may run
// several invocations at once.
//
// # The request that keys see
//
// An event becomes an *http.Request, so that keys, Skip, LimitBy and Cost are the
// same as behind any server.
//
//   - RemoteAddr is the source address that the platform reports, with port 0, so
//     that [handler.Direct] is right in every wrapper. A load balancer reports none:
//     there it is the rightmost entry of X-Forwarded-For, which the balancer appends
//     in its default mode (routing.http.xff_header_processing.mode is append). In
//     mode preserve the whole header is the client's and nothing here helps; in mode
//     remove there is no address. Without one RemoteAddr is empty, and all such
//     requests share one counter. Behind CloudFront the source address is
//     CloudFront's: use [handler.CloudFront].
//   - Header names are canonical. Spellings of one name that differ in case are one
//     header, with a line for each spelling in byte order of the spellings. In
//     X-Forwarded-For the order carries the meaning, so of several spellings none is
//     taken. Host is in r.Host, and the cookies array of HTTP APIs and Function URLs
//     is the Cookie header.
//   - URL.Path is the path of the route, without stage and base path, and RequestURI
//     the path as the event has it. For API Gateway it is the route's own template
//     ("/users/{proxy+}") filled in with the path parameters, if the event's path
//     ends so; else for an HTTP API the path without the stage before it (never with
//     $default, nor on a custom domain, where no stage is in the path); else the
//     event's path. The stage is cut off once: /prod/prod/x is /prod/x.
//   - Pattern is API Gateway's route ("POST /users/{proxy+}", for a REST API the
//     resource "/users/{proxy+}"), so that [handler.ByRoute] counts by it. It is
//     empty for $default, for Function URLs and for load balancers.
//   - The context is that of the invocation, whose deadline is the function's timeout.
//     With it go the claims that [handler.ByClaim] counts by: what the event has of an
//     authorizer, never a header. [Event] finds the event itself.
//
// # Streaming
//
// An answer is collected and returned at once. For a Function URL whose InvokeMode is
// RESPONSE_STREAM put the guard inside aws-lambda-go's lambdaurl:
// lambdaurl.Start(guard.Handler(mux)). Its requests have the source address as
// RemoteAddr too, but neither claims nor, as of v1.55.1, the Cookie header.
package lambda
