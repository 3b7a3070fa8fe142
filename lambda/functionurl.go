package lambda

import (
	"context"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sallyport/sallyport/handler"
)

// FunctionURL is [HTTPAPI] for a Function URL with InvokeMode BUFFERED.
func FunctionURL(g *handler.Guard, next func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error)) func(context.Context, events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
	guard := newGuarded(g)
	return func(ctx context.Context, ev events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		if next == nil {
			return events.LambdaFunctionURLResponse{}, errNoHandler
		}
		if ev.RequestContext.HTTP.Method == "" {
			return events.LambdaFunctionURLResponse{}, errShape("a request of a Function URL")
		}
		e := event{
			RawPath: ev.RawPath, RawQuery: ev.RawQueryString, Headers: ev.Headers, Cookies: ev.Cookies,
			Context: eventContext{
				DomainName: ev.RequestContext.DomainName,
				HTTP:       &eventHTTP{Method: ev.RequestContext.HTTP.Method, SourceIP: ev.RequestContext.HTTP.SourceIP},
			},
		}
		p := e.payload2()
		p.claims = functionURLClaims(ev.RequestContext.Authorizer)
		r := p.request(withEvent(ctx, &ev))
		setBody(r, ev.Body, ev.IsBase64Encoded)
		rec := guard.ask(r)
		if rec.allowed == nil {
			return rec.functionURL(), nil
		}
		resp, err := next(rec.allowed, ev)
		if err == nil {
			resp.Headers = addToSingle(rec.header, resp.Headers, nil)
			if resp.Cookies == nil {
				resp.Cookies = []string{}
			}
		}
		return resp, err
	}
}

// isFunctionURL tells a Function URL's domain from an HTTP API's.
func isFunctionURL(domain string) bool { return strings.Contains(domain, ".lambda-url.") }

func (rec *recorder) functionURL() events.LambdaFunctionURLResponse {
	rec.WriteHeader(http.StatusOK)
	headers, cookies := rec.single()
	body, isBase64 := rec.text()
	return events.LambdaFunctionURLResponse{
		StatusCode:      rec.status,
		Headers:         headers,
		Body:            body,
		IsBase64Encoded: isBase64,
		Cookies:         cookies,
	}
}
