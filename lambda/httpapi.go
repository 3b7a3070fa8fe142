package lambda

import (
	"context"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sallyport/sallyport/handler"
)

// HTTPAPI returns next behind g, for an HTTP API of API Gateway with payload format
// 2.0. Rate limit fields are added to the headers of an allowed answer; what next
// set stays, and an error of next passes through with its answer. The context of
// next carries what [handler.FromContext] finds. An event of another kind is an
// error and not counted; with payload format 1.0, use [RESTAPI]. A CORS preflight
// reaches next uncounted ([handler.Guard.Handler]): a route of ANY or $default, and
// every Function URL, takes OPTIONS too, and next must do no work for it.
func HTTPAPI(g *handler.Guard, next func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	guard := newGuarded(g)
	return func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		if next == nil {
			return events.APIGatewayV2HTTPResponse{}, errNoHandler
		}
		if ev.RequestContext.HTTP.Method == "" {
			return events.APIGatewayV2HTTPResponse{}, errShape("an HTTP API request of payload format 2.0")
		}
		e := event{
			RouteKey: ev.RouteKey, RawPath: ev.RawPath, RawQuery: ev.RawQueryString,
			Headers: ev.Headers, Cookies: ev.Cookies, PathParams: ev.PathParameters,
			Context: eventContext{
				Stage: ev.RequestContext.Stage, DomainName: ev.RequestContext.DomainName,
				HTTP: &eventHTTP{Method: ev.RequestContext.HTTP.Method, SourceIP: ev.RequestContext.HTTP.SourceIP},
			},
		}
		p := e.httpAPI()
		p.claims = httpAPIClaims(ev.RequestContext.Authorizer)
		r := p.request(withEvent(ctx, &ev))
		setBody(r, ev.Body, ev.IsBase64Encoded)
		rec := guard.ask(r)
		if rec.allowed == nil {
			return rec.httpAPI(), nil
		}
		resp, err := next(rec.allowed, ev)
		if err == nil {
			resp.Headers = addToSingle(rec.header, resp.Headers, nil)
			resp.MultiValueHeaders = cloneMulti(resp.MultiValueHeaders)
			if resp.Cookies == nil {
				resp.Cookies = []string{}
			}
		}
		return resp, err
	}
}

// httpAPI reads an event of payload format 2.0.
func (e *event) httpAPI() *parts {
	p := e.payload2()
	_, template, _ := strings.Cut(e.RouteKey, " ") // "ANY /users/{proxy+}", "$default"
	if route, ok := routePath(e.RawPath, template, e.PathParams); ok {
		p.path = route
	} else {
		p.path = withoutStage(e.RawPath, e.Context.Stage, e.Context.DomainName)
	}
	if e.RouteKey != "$default" {
		p.pattern = e.RouteKey
	}
	return p
}

// payload2 reads what HTTP APIs and Function URLs have in common.
func (e *event) payload2() *parts {
	h := singleHeader(e.Headers)
	joinCookies(h, e.Cookies)
	return &parts{
		method:  e.Context.HTTP.Method,
		path:    e.RawPath,
		rawPath: e.RawPath,
		query:   e.RawQuery,
		source:  e.Context.HTTP.SourceIP,
		domain:  e.Context.DomainName,
		header:  h,
	}
}

// httpAPI returns the answer. Payload format 2.0 reads no MultiValueHeaders.
func (rec *recorder) httpAPI() events.APIGatewayV2HTTPResponse {
	rec.WriteHeader(http.StatusOK)
	headers, cookies := rec.single()
	body, isBase64 := rec.text()
	return events.APIGatewayV2HTTPResponse{
		StatusCode:        rec.status,
		Headers:           headers,
		MultiValueHeaders: map[string][]string{},
		Body:              body,
		IsBase64Encoded:   isBase64,
		Cookies:           cookies,
	}
}
