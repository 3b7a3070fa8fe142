package lambda

import (
	"context"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sallyport/sallyport/handler"
)

// RESTAPI is [HTTPAPI] for a REST API of API Gateway with Lambda proxy integration,
// and for an HTTP API with payload format 1.0. The fields are added to Headers, or to
// MultiValueHeaders where the answer has that name there: API Gateway sends both.
// A method test in the console has no source address; see [handler.Direct].
func RESTAPI(g *handler.Guard, next func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)) func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	guard := newGuarded(g)
	return func(ctx context.Context, ev events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		if next == nil {
			return events.APIGatewayProxyResponse{}, errNoHandler
		}
		if ev.HTTPMethod == "" {
			return events.APIGatewayProxyResponse{}, errShape("a REST API request")
		}
		e := event{
			Method: ev.HTTPMethod, Resource: ev.Resource, Path: ev.Path, PathParams: ev.PathParameters,
			Query: ev.QueryStringParameters, MultiQuery: ev.MultiValueQueryStringParameters,
			Headers: ev.Headers, MultiHead: ev.MultiValueHeaders,
			Context: eventContext{
				Stage: ev.RequestContext.Stage, DomainName: ev.RequestContext.DomainName,
				Identity: &eventIdentity{SourceIP: ev.RequestContext.Identity.SourceIP},
			},
		}
		p := e.rest()
		p.claims = restClaims(ev.RequestContext.Authorizer, &ev.RequestContext.Identity)
		r := p.request(withEvent(ctx, &ev))
		setBody(r, ev.Body, ev.IsBase64Encoded)
		rec := guard.ask(r)
		if rec.allowed == nil {
			return rec.rest(), nil
		}
		resp, err := next(rec.allowed, ev)
		if err == nil {
			resp.Headers = addToSingle(rec.header, resp.Headers, resp.MultiValueHeaders)
			resp.MultiValueHeaders = addToMulti(rec.header, resp.MultiValueHeaders, false)
		}
		return resp, err
	}
}

// rest reads an event of payload format 1.0. multiValueHeaders has all that headers
// has, where it is there at all.
func (e *event) rest() *parts {
	p := &parts{
		method:  e.Method,
		path:    e.Path,
		rawPath: e.Path,
		query:   decodedQuery(e.MultiQuery, e.Query),
		source:  e.Context.Identity.SourceIP,
		domain:  e.Context.DomainName,
		header:  e.eitherHeader(),
	}
	if route, ok := routePath(e.Path, e.Resource, e.PathParams); ok {
		p.path = route
	} else if e.Resource == "$default" { // an HTTP API's, whose paths have the stage
		p.path = withoutStage(e.Path, e.Context.Stage, e.Context.DomainName)
	}
	if e.Resource != "$default" {
		p.pattern = e.Resource
	}
	return p
}

// eitherHeader reads multiValueHeaders, or headers if there are none.
func (e *event) eitherHeader() http.Header {
	if len(e.MultiHead) > 0 {
		return multiHeader(e.MultiHead)
	}
	return singleHeader(e.Headers)
}

// rest returns the answer. A name with several lines is in MultiValueHeaders, any
// other in Headers.
func (rec *recorder) rest() events.APIGatewayProxyResponse {
	rec.WriteHeader(http.StatusOK)
	headers := make(map[string]string, len(rec.sent))
	multi := map[string][]string{}
	for name, lines := range rec.sent {
		if len(lines) > 1 {
			multi[name] = lines
		} else {
			headers[name] = lines[0]
		}
	}
	body, isBase64 := rec.text()
	return events.APIGatewayProxyResponse{
		StatusCode:        rec.status,
		Headers:           headers,
		MultiValueHeaders: multi,
		Body:              body,
		IsBase64Encoded:   isBase64,
	}
}
