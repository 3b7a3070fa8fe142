//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
)

const keySecret = "0123456789abcdef0123456789abcdef"

// parameters is an answer of Parameter Store that holds these names and values.
func parameters(kind string, pairs ...string) string {
	found := []map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		found = append(found, map[string]string{"Name": pairs[i], "Type": kind, "Value": pairs[i+1]})
	}
	text, err := json.Marshal(map[string]any{"Parameters": found, "InvalidParameters": []string{"/sallyport/webhook/UPSTASH_REDIS_REST_TOKEN"}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// reply is what the scripted server answers; status 0 cuts the connection.
type reply struct {
	status int
	body   string
}

// parameterServer answers one call after the other, the last one again and again, and
// counts them.
func parameterServer(t *testing.T, replies ...reply) *atomic.Int32 {
	t.Helper()
	calls := new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := replies[min(int(calls.Add(1)), len(replies))-1]
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/" ||
			r.Header.Get("X-Amz-Target") != "AmazonSSM.GetParameters" || r.Header.Get("Content-Type") != "application/x-amz-json-1.1" {
			t.Errorf("no call of GetParameters: %s %s %v: %v", r.Method, r.URL, r.Header, err)
		}
		var asked struct {
			Names          []string
			WithDecryption bool
		}
		if json.Unmarshal(body, &asked) != nil || !asked.WithDecryption || len(asked.Names) != len(secretVariables) || asked.Names[0] != "/sallyport/webhook/SALLYPORT_KEY_SECRET" {
			t.Errorf("asked for %s", body)
		}
		signed := r.Header.Get("Authorization")
		if !strings.HasPrefix(signed, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/") || !strings.Contains(signed, "/eu-central-1/ssm/aws4_request, ") ||
			!strings.Contains(signed, "x-amz-security-token") || !strings.Contains(signed, "x-amz-target") || r.Header.Get("X-Amz-Security-Token") != "session" {
			t.Errorf("signed with %s", signed)
		}
		if answer.status == 0 {
			panic(http.ErrAbortHandler)
		}
		if answer.status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(answer.status)
		_, _ = io.WriteString(w, answer.body)
	}))
	t.Cleanup(server.Close)
	for _, name := range secretVariables {
		t.Setenv(name, "")
		require.NoError(t, os.Unsetenv(name)) // t.Setenv restores it
	}
	for name, value := range map[string]string{
		"SALLYPORT_SECRETS": "/sallyport/webhook", "AWS_ENDPOINT_URL_SSM": server.URL, "AWS_REGION": "eu-central-1",
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "signing", "AWS_SESSION_TOKEN": "session",
	} {
		t.Setenv(name, value)
	}
	return calls
}

const path = "/sallyport/webhook/"

func TestSecretsAreRead(t *testing.T) {
	full := parameters("SecureString", path+"SALLYPORT_KEY_SECRET", keySecret, path+"SALLYPORT_WEBHOOK_SECRET", secret+"\r\n")
	tests := []struct {
		name    string
		replies []reply
		calls   int
	}{
		{"at once", []reply{{200, full}}, 1},
		{"throttled", []reply{{400, `{"__type":"ThrottlingException","message":"slow down"}`}, {200, full}}, 2},
		{"fails, and is cut", []reply{{500, "<html>"}, {}, {200, full}}, 3},
		{"half an answer", []reply{{200, full[:40]}, {200, full}}, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			calls := parameterServer(t, test.replies...)
			require.NoError(t, readSecrets())
			require.Equal(t, test.calls, int(calls.Load()))
			require.Equal(t, keySecret, os.Getenv("SALLYPORT_KEY_SECRET"))
			require.Equal(t, secret, os.Getenv("SALLYPORT_WEBHOOK_SECRET"))
			_, set := os.LookupEnv("UPSTASH_REDIS_REST_TOKEN")
			require.False(t, set, "what is not there stays absent")
		})
	}
}

// The function starts with its secrets in Parameter Store alone, and logs none.
func TestFunctionReadsItsSecrets(t *testing.T) {
	redis := upstashtest.New(t)
	calls := parameterServer(t, reply{200, parameters("SecureString", path+"SALLYPORT_KEY_SECRET", keySecret,
		path+"SALLYPORT_WEBHOOK_SECRET", secret, path+"UPSTASH_REDIS_REST_TOKEN", redis.Token)})
	env := []string{"UPSTASH_REDIS_REST_URL=" + redis.URL, "SALLYPORT_LIMIT=2/1h"}
	for _, name := range []string{"SALLYPORT_SECRETS", "AWS_ENDPOINT_URL_SSM", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	f := start(t, env...)
	require.Equal(t, map[int]int{200: 2, 429: 3}, flood(t, 5, "203.0.113.1", f))
	require.Equal(t, 1, int(calls.Load()), "once, and not for each request")
	for _, hidden := range []string{keySecret, secret[8:], redis.Token} {
		require.NotContains(t, f.log.String(), hidden)
	}
}

// Without a path nobody is asked.
func TestSecretsInTheEnvironment(t *testing.T) {
	calls := parameterServer(t, reply{200, "{}"})
	t.Setenv("SALLYPORT_SECRETS", "")
	require.NoError(t, readSecrets())
	require.Zero(t, calls.Load())
}

// A secret that can't be had ends the start: nothing runs with half of them, and no
// error shows one.
func TestSecretsAreRefused(t *testing.T) {
	const value = "hush-0123456789abcdef0123456789abcdef"
	ok := parameters("SecureString", path+"SALLYPORT_KEY_SECRET", value)
	tests := []struct {
		name  string
		env   []string
		reply reply
		calls int
		says  string
	}{
		{"denied", nil, reply{400, `{"__type":"com.amazonaws.ssm#AccessDeniedException","message":"` + value + `"}`}, 1, "status 400, AccessDeniedException"},
		{"throttled for good", nil, reply{400, `{"__type":"ThrottlingException"}`}, 3, "ThrottlingException"},
		{"down", nil, reply{503, value}, 3, "status 503, unknown"},
		{"a kind that is none", nil, reply{400, `{"__type":"` + value + `"}`}, 1, "status 400, unknown"},
		{"cut", nil, reply{}, 3, "EOF"},
		{"no JSON", nil, reply{200, value}, 3, "no JSON of its kind"},
		{"a redirect", nil, reply{302, value}, 1, "status 302"},
		{"without the key's secret", nil, reply{200, parameters("SecureString", path+"SALLYPORT_WEBHOOK_SECRET", value)}, 1, "there is no " + path + "SALLYPORT_KEY_SECRET"},
		{"a short one", nil, reply{200, parameters("SecureString", path+"SALLYPORT_KEY_SECRET", value[:31])}, 1, "31 bytes"},
		{"not encrypted", nil, reply{200, parameters("String", path+"SALLYPORT_KEY_SECRET", value)}, 1, path + "SALLYPORT_KEY_SECRET is no SecureString"},
		{"something else", nil, reply{200, parameters("SecureString", "/else/SALLYPORT_KEY_SECRET", value)}, 1, "about something else"},
		{"in both places", []string{"SALLYPORT_KEY_SECRET=" + value}, reply{200, ok}, 1, "and in the environment"},
		{"a zero byte", nil, reply{200, parameters("SecureString", path+"SALLYPORT_KEY_SECRET", value+"\x00")}, 1, "can't stand in an environment"},
		{"no path", []string{"SALLYPORT_SECRETS=webhook"}, reply{200, ok}, 0, "want a path"},
		{"a path that ends", []string{"SALLYPORT_SECRETS=/webhook/"}, reply{200, ok}, 0, "want a path"},
		{"no region", []string{"AWS_REGION="}, reply{200, ok}, 0, "AWS_REGION"},
		{"no credentials", []string{"AWS_SECRET_ACCESS_KEY="}, reply{200, ok}, 0, "AWS_SECRET_ACCESS_KEY"},
		{"in clear text", []string{"AWS_ENDPOINT_URL_SSM=http://ssm.example"}, reply{200, ok}, 0, "want https"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			calls := parameterServer(t, test.reply)
			for _, variable := range test.env {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			err := readSecrets()
			require.ErrorContains(t, err, test.says)
			require.ErrorContains(t, err, "SALLYPORT_SECRETS: ")
			require.NotContains(t, err.Error(), "hush")
			require.NotContains(t, err.Error(), "signing")
			require.Equal(t, test.calls, int(calls.Load()))
		})
	}
}

// The services' own endpoints, which no test can ask.
func TestParameterStoreEndpoint(t *testing.T) {
	parameterServer(t, reply{})
	t.Setenv("AWS_ENDPOINT_URL_SSM", "")
	for region, want := range map[string]string{
		"eu-central-1": "https://ssm.eu-central-1.amazonaws.com",
		"cn-north-1":   "https://ssm.cn-north-1.amazonaws.com.cn",
	} {
		t.Setenv("AWS_REGION", region)
		s, err := parameterStoreFromEnv()
		require.NoError(t, err)
		require.Equal(t, want, s.endpoint)
	}
}
