package lambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
)

func byName(name string) entry {
	for _, e := range entries() {
		if e.name == name {
			return e
		}
	}
	panic(name)
}

// budget tells how many of n events pass behind a guard that counts by a claim.
func budget(t *testing.T, h awslambda.Handler, n int, ev func(i int) object) int {
	passed := 0
	for i := range n {
		if status(invoke(t, h, ev(i))) == 200 {
			passed++
		}
	}
	return passed
}

// Each authorizer's claims are found, whatever address the caller has, through the
// typed wrapper and through HTTP alike.
func TestClaims(t *testing.T) {
	for _, tt := range []struct {
		entry, file, at, claim string
		value                  any
	}{
		{"http api", "apigw-v2-request-jwt-authorizer.json", "jwt.claims.sub", "sub", "ann"},
		{"http api", "apigw-v2-request-jwt-authorizer.json", "jwt.claims.claim1", "claim1", "ann"},
		{"http api", "apigw-v2-request-lambda-authorizer.json", "lambda.tenant", "tenant", "ann"},
		{"http api", "apigw-v2-request-lambda-authorizer.json", "lambda.tenant", "tenant", 7},
		{"http api", "apigw-v2-request-lambda-authorizer.json", "lambda.vip", "vip", true},
		{"http api", "apigw-v2-request-iam.json", "iam.userArn", "userArn", "arn:aws:iam::1:user/ann"},
		{"http api", "apigw-v2-request-iam.json", "iam.userId", "userId", "ann"},
		{"http api", "apigw-v2-request-iam.json", "iam.accountId", "accountId", "1"},
		{"http api", "apigw-v2-request-iam.json", "iam.callerId", "callerId", "ann"},
		{"http api", "apigw-v2-request-iam.json", "iam.accessKey", "accessKey", "AKIA1"},
		{"http api", "apigw-v2-request-iam.json", "iam.principalOrgId", "principalOrgId", "o-1"},
		{"http api", "apigw-v2-request-iam.json", "iam.cognitoIdentity.identityId", "cognitoIdentityId", "ann"},
		{"http api", "apigw-v2-request-iam.json", "iam.cognitoIdentity.identityPoolId", "cognitoIdentityPoolId", "pool"},
		{"function url", "lambda-urls-request.json", "iam.userArn", "userArn", "arn:aws:iam::1:user/ann"},
		{"function url", "lambda-urls-request.json", "iam.userId", "userId", "ann"},
		{"function url", "lambda-urls-request.json", "iam.accountId", "accountId", "1"},
		{"function url", "lambda-urls-request.json", "iam.callerId", "callerId", "ann"},
		{"function url", "lambda-urls-request.json", "iam.accessKey", "accessKey", "AKIA1"},
		{"rest api", "apigw-request.json", "principalId", "principalId", "ann"},
		{"rest api", "apigw-request.json", "clientId", "clientId", 7},
		{"rest api", "apigw-request.json", "claims.sub", "sub", "ann"},
		{"rest api", "apigw-request.json", "claims.cognito:username", "cognito:username", "ann"},
		{"rest api", "apigw-request.json", "../identity.userArn", "userArn", "arn:aws:iam::1:user/ann"},
		{"rest api", "apigw-request.json", "../identity.user", "userId", "ann"},
		{"rest api", "apigw-request.json", "../identity.caller", "callerId", "ann"},
		{"rest api", "apigw-request.json", "../identity.accountId", "accountId", "1"},
		{"rest api", "apigw-request.json", "../identity.accessKey", "accessKey", "AKIA1"},
		{"rest api", "apigw-request.json", "../identity.apiKeyId", "apiKeyId", "k1"},
		{"rest api", "apigw-request.json", "../identity.cognitoIdentityId", "cognitoIdentityId", "ann"},
		{"rest api", "apigw-request.json", "../identity.cognitoIdentityPoolId", "cognitoIdentityPoolId", "pool"},
	} {
		e := byName(tt.entry)
		for way, wrap := range map[string]wrapping{"typed": e.typed, "http": plain, "raw": raw(t, e)} {
			t.Run(tt.at+" "+way, func(t *testing.T) {
				h := wrap(newGuard(t, fivePerHour, keyedBy(handler.ByClaim(tt.claim))), ignore)
				at := "requestContext.authorizer." + tt.at
				if tt.at[0] == '.' {
					at = "requestContext." + tt.at[len("../"):]
				}
				ev := func(value any) func(int) object {
					return func(i int) object {
						ev := e.from(awsEvent(t, tt.file), fmt.Sprintf("203.0.113.%d", i), "9.9.9.9")
						return put(ev, at, value)
					}
				}
				require.Equal(t, 5, budget(t, h, 9, ev(tt.value)))
				if tt.value != true {
					require.Equal(t, 5, budget(t, h, 9, ev("ben")), "another caller")
				}
			})
		}
	}
}

// Without the claim, or with an odd one, the address counts; nothing panics, and the
// event is served.
func TestNoClaims(t *testing.T) {
	odd := []any{nil, "", "claims", 7, 0.5, true, []any{}, []any{"ann"}, object{}, object{"claims": nil}, object{"claims": "x"}, object{"claims": []any{1}},
		object{"jwt": nil}, object{"lambda": object{"sub": nil}}, object{"lambda": object{"sub": object{"a": "b"}}}, object{"iam": object{}}, object{"sub": []any{"ann"}}, object{"claims": object{"sub": nil}}}
	for _, e := range entries() {
		t.Run(e.name, func(t *testing.T) {
			g := newGuard(t, fivePerHour, keyedBy(handler.ByClaim("sub")))
			ev := func(i int) object {
				return put(e.from(awsEvent(t, e.file), "203.0.113.9", "9.9.9.9"), "requestContext.authorizer", odd[i%len(odd)])
			}
			require.Equal(t, 5, budget(t, plain(g, ignore), 2*len(odd), ev))
			// The typed wrappers see what aws-lambda-go could decode.
			h := e.typed(newGuard(t, fivePerHour, keyedBy(handler.ByClaim("sub"))), ignore)
			passed, undecoded := 0, 0
			for i := range 2 * len(odd) {
				b, err := h.Invoke(t.Context(), encode(t, ev(i)))
				if err != nil {
					undecoded++
				} else if status(decode(t, b)) == 200 {
					passed++
				}
			}
			require.Equal(t, 5, passed)
			require.Less(t, undecoded, 2*len(odd)-10)
		})
	}
}

// No header, query or body is a claim, and neither is what the identity has beside
// the proven names.
func TestClaimsAreNotTheCallers(t *testing.T) {
	e := byName("rest api")
	for _, claim := range []string{"userAgent", "sourceIp", "apiKey", "sub", "X-Sub"} {
		for _, wrap := range []wrapping{e.typed, plain} {
			h := wrap(newGuard(t, fivePerHour, keyedBy(handler.ByClaim(claim))), ignore)
			require.Equal(t, 5, budget(t, h, 20, func(i int) object {
				ev := e.from(awsEvent(t, e.file), "203.0.113.9", "9.9.9.9")
				e.headers(ev, map[string]string{"sub": fmt.Sprint(i), "x-sub": fmt.Sprint(i), "authorization": fmt.Sprint(i), "user-agent": fmt.Sprint(i)})
				put(ev, "queryStringParameters", object{"sub": fmt.Sprint(i)})
				put(ev, "requestContext.identity.userAgent", fmt.Sprint(i))
				put(ev, "requestContext.identity.apiKey", fmt.Sprint(i))
				return put(ev, "body", fmt.Sprintf(`{"requestContext":{"authorizer":{"sub":"%d"}}}`, i))
			}), claim)
		}
	}
}

// A field is found in a body that travels as base64, the event reaches the
// handler as it came, and what is not the base64 that it says it is is refused.
func TestBodyKeys(t *testing.T) {
	ways(t, func(t *testing.T, e entry, wrap func(*handler.Guard, func(context.Context, any)) awslambda.Handler) {
		var seen any
		var value string
		h := wrap(newGuard(t, fivePerHour, keyedBy(handler.FirstOf(handler.ByForm("email"), handler.ByJSON("email")))), func(ctx context.Context, ev any) {
			seen = ev
			value, _ = handler.KeyValue(ctx, "email")
		})
		const form, jsonType = "application/x-www-form-urlencoded", "application/json"
		body := func(i int, kind, text string, isBase64 bool) object {
			ev := e.from(e.headers(awsEvent(t, e.file), map[string]string{"content-type": kind}), fmt.Sprintf("203.0.113.%d", i), "9.9.9.9")
			put(ev, "queryStringParameters", nil)
			put(ev, "multiValueQueryStringParameters", nil)
			put(ev, "rawQueryString", "")
			put(ev, "body", text)
			put(ev, "isBase64Encoded", isBase64)
			if e.name == "function url" || e.name == "http api" {
				put(ev, "requestContext.http.method", "POST")
			} else {
				put(ev, "httpMethod", "POST")
			}
			return ev
		}
		same := []func(i int) object{
			func(i int) object { return body(i, form, "email=a%40b.c", false) },
			func(i int) object { return body(i, form, "ZW1haWw9YSU0MGIuYw==", true) },
			func(i int) object { return body(i, form, "b=1&EMAIL=a@b.c", false) },
		}
		require.Equal(t, 5, budget(t, h, 12, func(i int) object { return same[i%3](i) }))
		require.Equal(t, "a@b.c", value)
		for _, text := range []string{`{"email":"a@b.c"}`, `eyJlbWFpbCI6ImFAYi5jIn0=`} {
			value = ""
			ev := body(1, jsonType, text, text[0] != '{')
			require.Equal(t, 200, status(invoke(t, h, ev)))
			require.Equal(t, "a@b.c", value)
			if seen != nil { // a typed handler's event
				got := encode(t, seen)
				want := e.decoded()
				require.NoError(t, json.Unmarshal(encode(t, ev), want))
				require.JSONEq(t, string(encode(t, want)), string(got))
			}
		}
		for _, text := range []string{"ZW1haWw9YSU0MGIuYw=", "email=a%40b.c", "!", "ZW1h\x00"} {
			require.Equal(t, 400, status(invoke(t, h, body(1, form, text, true))), text)
		}
		require.Equal(t, 400, status(invoke(t, h, body(1, "text/plain", "email=a", false))))
		require.Equal(t, 400, status(invoke(t, h, body(1, form, "email=a&email=b", false))))
		// A flag without a body is no body: the address counts.
		require.Equal(t, 5, budget(t, h, 9, func(int) object { return body(77, form, "", true) }))
	})
}
