package lambda

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sallyport/sallyport/handler"
)

// ALB is [HTTPAPI] for an Application Load Balancer with the function as its target.
// A target group with multi-value headers sends them in the event and reads nothing
// else in the answer; one without does the reverse. Refusals and added fields follow
// the event. The balancer's own health checks go to next uncounted: their events
// have the header User-Agent and nothing else, whereas the balancer adds X-Amzn-Trace-Id
// and X-Forwarded-Port to whatever a client sends.
func ALB(g *handler.Guard, next func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error)) func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
	guard := newGuarded(g)
	return func(ctx context.Context, ev events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
		if next == nil {
			return events.ALBTargetGroupResponse{}, errNoHandler
		}
		if ev.HTTPMethod == "" {
			return events.ALBTargetGroupResponse{}, errShape("a request of an Application Load Balancer")
		}
		e := event{
			Method: ev.HTTPMethod, Path: ev.Path, Query: ev.QueryStringParameters, MultiQuery: ev.MultiValueQueryStringParameters,
			Headers: ev.Headers, MultiHead: ev.MultiValueHeaders,
		}
		var fields http.Header
		if !e.isHealthCheck() {
			r := e.alb().request(withEvent(ctx, &ev))
			setBody(r, ev.Body, ev.IsBase64Encoded)
			rec := guard.ask(r)
			if rec.allowed == nil {
				return rec.alb(e.multi()), nil
			}
			ctx, fields = rec.allowed, rec.header
		}
		resp, err := next(ctx, ev)
		if err == nil {
			if e.multi() {
				resp.Headers = cloneSingle(resp.Headers)
				resp.MultiValueHeaders = addToMulti(fields, resp.MultiValueHeaders, true)
			} else {
				resp.Headers = addToSingle(fields, resp.Headers, nil)
				resp.MultiValueHeaders = cloneMulti(resp.MultiValueHeaders)
			}
		}
		return resp, err
	}
}

// multi tells whether the target group uses multi-value headers.
func (e *event) multi() bool { return len(e.MultiHead) > 0 }

// isHealthCheck tells an event that the balancer made itself.
func (e *event) isHealthCheck() bool {
	if len(e.Headers)+len(e.MultiHead) != 1 {
		return false
	}
	agent := e.eitherHeader()["User-Agent"]
	return len(agent) == 1 && strings.HasPrefix(agent[0], "ELB-HealthChecker/")
}

// alb reads an event of a load balancer, which decodes neither path nor query.
func (e *event) alb() *parts {
	h := e.eitherHeader()
	return &parts{
		method:  e.Method,
		path:    e.Path,
		rawPath: e.Path,
		query:   encodedQuery(e.MultiQuery, e.Query),
		source:  rightmost(h[forwardedFor]),
		header:  h,
	}
}

// rightmost returns the last entry of X-Forwarded-For, which the load balancer wrote.
func rightmost(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	line := lines[len(lines)-1]
	return line[strings.LastIndexByte(line, ',')+1:]
}

func (rec *recorder) alb(multi bool) events.ALBTargetGroupResponse {
	rec.WriteHeader(http.StatusOK)
	body, isBase64 := rec.text()
	resp := events.ALBTargetGroupResponse{
		StatusCode:        rec.status,
		StatusDescription: statusLine(rec.status),
		Headers:           map[string]string{},
		MultiValueHeaders: map[string][]string{},
		Body:              body,
		IsBase64Encoded:   isBase64,
	}
	if multi {
		resp.MultiValueHeaders = rec.sent
		return resp
	}
	var cookies []string
	resp.Headers, cookies = rec.single()
	for i, cookie := range cookies {
		resp.Headers[spelt("set-cookie", i)] = cookie
	}
	return resp
}

// statusLine is what the load balancer wants beside the number, and what it takes a
// function for broken without: "429 Too Many Requests".
func statusLine(status int) string {
	text := http.StatusText(status)
	if text == "" {
		text = "Status"
	}
	return strconv.Itoa(status) + " " + text
}

// spelt returns the n-th spelling of a name in upper and lower case: a map of single
// values has room for several lines of one name only under several spellings, and
// cookies can't be joined into one line. Beyond 512 spellings of set-cookie they
// repeat, and the last line wins.
func spelt(name string, n int) string {
	b := []byte(name)
	for i, c := range b {
		if c < 'a' || c > 'z' {
			continue
		}
		if n&1 == 1 {
			b[i] = c - 'a' + 'A'
		}
		n >>= 1
	}
	return string(b)
}
