package lambda_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/lambda"
)

type wrapping = func(*handler.Guard, func(context.Context, any)) awslambda.Handler

// request returns the request that a key sees of ev.
func request(t testing.TB, wrap wrapping, ev any) *http.Request {
	var seen *http.Request
	g := newGuard(t, fivePerHour, keyedBy(handler.ByFunc(func(r *http.Request) string {
		seen = r
		return "x"
	})))
	require.Equal(t, 200, status(invoke(t, wrap(g, ignore), ev)))
	return seen
}

// headers replaces the headers of an event, in the form that e has them.
func (e entry) headers(ev object, lines map[string]string) object {
	single, multi := object{}, object{}
	for name, value := range lines {
		single[name], multi[name] = value, []string{value}
	}
	if !e.multi {
		ev["headers"] = single
	}
	if e.multi || e.name == "rest api" {
		ev["multiValueHeaders"] = multi
	}
	return ev
}

func TestRemoteAddr(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		for addr, want := range map[string]string{
			"203.0.113.9":           "203.0.113.9:0",
			"2001:db8::9":           "[2001:db8::9]:0",
			" 203.0.113.9 ":         "203.0.113.9:0",
			"test-invoke-source-ip": "test-invoke-source-ip",
			"":                      "",
		} {
			r := request(t, wrap, e.from(awsEvent(t, e.file), addr, "198.51.100.1"))
			require.Equal(t, want, r.RemoteAddr)
			if want != "" && want != addr {
				_, _, err := net.SplitHostPort(r.RemoteAddr)
				require.NoError(t, err)
			}
		}
	})
}

// A load balancer may be told to write the client's port.
func TestLoadBalancerWithPorts(t *testing.T) {
	for _, e := range entries()[3:] {
		for _, chain := range []string{"203.0.113.9:%d", "[2001:db8::9]:%d"} {
			h := e.typed(newGuard(t, fivePerHour), ignore)
			passed := 0
			for i := range 20 {
				if status(invoke(t, h, e.from(awsEvent(t, e.file), fmt.Sprintf(chain, 1024+i), "9.9.9.9"))) == 200 {
					passed++
				}
			}
			require.Equal(t, 5, passed)
		}
		// No address at all, in mode remove or in a made-up event: one key for all.
		h := e.typed(newGuard(t, fivePerHour), ignore)
		passed := 0
		for i := range 20 {
			ev := e.headers(awsEvent(t, e.file), map[string]string{"host": fmt.Sprint(i), "x-real-ip": fmt.Sprintf("203.0.113.%d", i)})
			if status(invoke(t, h, ev)) == 200 {
				passed++
			}
		}
		require.Equal(t, 5, passed)
	}
}

// A key finds a header under every spelling, and a second spelling is no second
// budget.
func TestHeaderSpellings(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		h := wrap(newGuard(t, fivePerHour, keyedBy(handler.ByHeader("X-Api-Key"))), ignore)
		passed := 0
		for range 5 {
			for _, name := range []string{"x-api-key", "X-API-KEY", "X-Api-Key", "x-API-key"} {
				if status(invoke(t, h, e.headers(awsEvent(t, e.file), map[string]string{name: "k1"}))) == 200 {
					passed++
				}
			}
		}
		require.Equal(t, 5, passed)

		// Two at once are two lines, in byte order of the spellings.
		for range 20 {
			r := request(t, wrap, e.headers(awsEvent(t, e.file), map[string]string{"x-api-key": "c", "X-API-KEY": "a", "X-Api-Key": "b", "host": "h"}))
			require.Equal(t, []string{"a", "b", "c"}, r.Header["X-Api-Key"])
		}
		// Of a chain of addresses nothing is left: nobody can tell which end is whose.
		r := request(t, wrap, e.headers(awsEvent(t, e.file), map[string]string{"x-forwarded-for": "203.0.113.1", "X-Forwarded-For": "203.0.113.2", "X-Api-Key": "b"}))
		require.NotContains(t, r.Header, "X-Forwarded-For")
		if strings.HasPrefix(e.name, "alb") {
			require.Empty(t, r.RemoteAddr)
		}
	})
}

// What differs counts apart, whatever an event may hold that no server would let
// through; half a surrogate pair, which is no text at all, is one for all.
func TestAwkwardValues(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		h := wrap(newGuard(t, fivePerHour, keyedBy(handler.ByHeader("X-Api-Key"))), ignore)
		for _, value := range []string{"ab", "a b", `a"b`, `a\b`, "a/b", "a%2Fb", "{a}b", "a\x00b", "a\r\nX-Api-Key: b", "a\nb", "a,b", "áb", "a\u2028b", strings.Repeat("a", 64<<10), "\xed\xa0\x80"} {
			for i := range 7 {
				want := 200
				if i >= 5 {
					want = 429
				}
				answer := invoke(t, h, e.headers(awsEvent(t, e.file), map[string]string{"x-api-key": value, "host": "h"}))
				require.Equal(t, want, status(answer), "%.20q", value)
			}
		}
		for i, surrogate := range []string{`\ud800`, `\udfff`} {
			payload := encode(t, e.headers(awsEvent(t, e.file), map[string]string{"x-api-key": "HALF", "host": "h"}))
			b, err := h.Invoke(t.Context(), []byte(strings.ReplaceAll(string(payload), "HALF", "x"+surrogate)))
			require.NoError(t, err)
			require.Contains(t, e.one(t, decode(t, b), "RateLimit"), fmt.Sprintf(`"test";r=%d;`, 4-i))
		}
	})
}

// The cookies array is the Cookie header.
func TestCookies(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		withCookie := func(session string) object {
			if strings.Contains("http api function url", e.name) {
				return put(awsEvent(t, e.file), "cookies", []string{"theme=dark", "session=" + session})
			}
			return e.headers(awsEvent(t, e.file), map[string]string{"cookie": "theme=dark; session=" + session})
		}
		r := request(t, wrap, withCookie("s1"))
		c, err := r.Cookie("session")
		require.NoError(t, err)
		require.Equal(t, "s1", c.Value)
		require.Equal(t, []string{"theme=dark; session=s1"}, r.Header["Cookie"])

		h := wrap(newGuard(t, fivePerHour, keyedBy(handler.ByCookie("session"))), ignore)
		for i := range 10 {
			want := 200
			if i >= 5 {
				want = 429
			}
			require.Equal(t, want, status(invoke(t, h, withCookie("s1"))))
		}
		require.Equal(t, 200, status(invoke(t, h, withCookie("s2"))))
	})
}

// A key reads the body, not its encoding; what is broken is an error to the
// reader and to nobody else.
func TestBodies(t *testing.T) {
	form := "email=a%40b.c&bin=\x00\xff"
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		var body string
		var readErr error
		var length int64
		g := newGuard(t, fivePerHour, keyedBy(handler.ByFunc(func(r *http.Request) string {
			b, err := io.ReadAll(r.Body)
			body, readErr, length = string(b), err, r.ContentLength
			return body
		})), func(cfg *handler.Config) { cfg.Policies[0].Limit.Quota = 100 })
		ran := false
		h := wrap(g, func(context.Context, any) { ran = true })
		isHTTP := strings.HasSuffix(t.Name(), "/http")

		send := func(text string, isBase64 bool) int {
			body, readErr, ran, length = "not read", nil, false, -2
			return status(invoke(t, h, put(put(awsEvent(t, e.file), "body", text), "isBase64Encoded", isBase64)))
		}
		require.Equal(t, 200, send("email=a%40b.c", false))
		require.Equal(t, "email=a%40b.c", body)
		require.Equal(t, int64(13), length)
		require.True(t, ran)

		require.Equal(t, 200, send(base64.StdEncoding.EncodeToString([]byte(form)), true))
		require.NoError(t, readErr)
		require.Equal(t, form, body)
		require.True(t, ran)

		require.Equal(t, 200, send("", true))
		require.NoError(t, readErr)
		require.Empty(t, body)
		require.Zero(t, length)

		for _, broken := range []string{"####", "YQ", "YQ=", "email=a@b.c"} {
			if isHTTP {
				require.Equal(t, http.StatusBadRequest, send(broken, true), broken)
				require.False(t, ran)
				continue
			}
			require.Equal(t, 200, send(broken, true), broken)
			require.Error(t, readErr, broken)
			require.True(t, ran)
		}
	})
}

func TestQueries(t *testing.T) {
	for _, e := range entries() {
		ev := awsEvent(t, e.file)
		var want string
		switch {
		case strings.HasPrefix(e.name, "alb"): // left encoded
			delete(ev, "queryStringParameters")
			put(ev, "multiValueQueryStringParameters", object{"b": []string{"2", "1"}, "a%5B%5D": []string{"x%20y+z"}})
			want = "a%5B%5D=x%20y+z&b=2&b=1"
		case e.name == "rest api": // decoded
			put(ev, "multiValueQueryStringParameters", object{"b": []string{"2", "1"}, "a[]": []string{"x y+z&="}})
			want = "a%5B%5D=x+y%2Bz%26%3D&b=2&b=1"
		default:
			put(ev, "rawQueryString", "b=2&a%5B%5D=x%20y&b=1")
			want = "b=2&a%5B%5D=x%20y&b=1"
		}
		for _, wrap := range []wrapping{e.typed, plain} {
			r := request(t, wrap, ev)
			require.Equal(t, want, r.URL.RawQuery, e.name)
			require.True(t, strings.HasSuffix(r.RequestURI, "?"+want))
			require.Equal(t, []string{"2", "1"}, r.URL.Query()["b"])
			require.Len(t, r.URL.Query()["a[]"], 1)
		}
	}
	// Without the multi-value maps.
	r := request(t, entries()[2].typed, put(put(awsEvent(t, "apigw-request.json"), "multiValueQueryStringParameters", nil), "queryStringParameters", object{"b": "x y", "a": "1"}))
	require.Equal(t, "a=1&b=x+y", r.URL.RawQuery)
	r = request(t, entries()[3].typed, put(awsEvent(t, "alb-lambda-target-request-headers-only.json"), "queryStringParameters", object{"b": "x%20y", "a": "1"}))
	require.Equal(t, "a=1&b=x%20y", r.URL.RawQuery)
}

// The rest of the request, from the events as aws-lambda-go has them.
func TestRequest(t *testing.T) {
	for _, c := range []struct{ file, method, path, host, pattern, remote string }{
		{"apigw-v2-request-no-authorizer.json", "GET", "/", "aaaaaaaaaa.execute-api.us-west-2.amazonaws.com", "", "1.2.3.4:0"},
		{"apigw-v2-request-jwt-authorizer.json", "GET", "/my/path", "id.execute-api.us-east-1.amazonaws.com", "", "IP"},
		{"lambda-urls-request.json", "POST", "/my/path", "<url-id>.lambda-url.us-west-2.on.aws", "", "123.123.123.123:0"},
		{"apigw-request.json", "POST", "/hello/world", "gy415nuibc.execute-api.us-east-1.amazonaws.com", "/{proxy+}", "192.168.196.186:0"},
		{"alb-lambda-target-request-headers-only.json", "GET", "/", "lambda-test-alb-1334523864.us-east-1.elb.amazonaws.com", "", "25.12.198.67:0"},
		{"alb-lambda-target-request-multivalue-headers.json", "GET", "/", "lambda-test-alb-1234567.us-east-1.elb.amazonaws.com", "", "72.21.198.67:0"},
	} {
		r := request(t, plain, awsEvent(t, c.file))
		require.Equal(t, c.method, r.Method, c.file)
		require.Equal(t, c.path, r.URL.Path, c.file)
		require.Empty(t, r.URL.Host, c.file)
		require.Equal(t, c.host, r.Host, c.file)
		require.NotContains(t, r.Header, "Host")
		require.Equal(t, c.pattern, r.Pattern, c.file)
		require.Equal(t, c.remote, r.RemoteAddr, c.file)
		require.Equal(t, "HTTP/1.1", r.Proto)
		require.True(t, r.ProtoAtLeast(1, 1))
	}
}

// A mux inside HTTP routes by the route's path, and a guard around it sees the same.
func TestMuxInside(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /item/{id}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Pattern+" "+r.PathValue("id"))
	})
	ev := awsEvent(t, "apigw-v2-request-no-authorizer.json")
	put(put(ev, "rawPath", "/prod/item/a%2Fb"), "requestContext.stage", "prod")
	answer := invoke(t, lambda.HTTP(mux), ev)
	require.Equal(t, 200, status(answer))
	require.Equal(t, "GET /item/{id} a/b", answer["body"])
}
