package upstash

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// defaultTimeout is Config.Timeout's zero value. It is long for one Redis command,
// and short against what a visitor waits.
const defaultTimeout = time.Second

// Config says which database to use. URL and Token are required.
type Config struct {
	// URL of the REST endpoint, as Upstash's console shows it under "REST API":
	// https, or http for a loopback host. A path is kept as a prefix.
	URL string

	// Token for the REST endpoint. It needs the rights for INCR, PEXPIRE, PTTL, for the
	// script EVALSHA, EVAL, GET, SET and TIME, and for Reset DEL. It shows in no error, log
	// line or print of a Config.
	Token string

	// Transport carries the requests. Nil means one of the store's own: HTTP/1.1 only
	// (a dead HTTP/2 connection fails every request until TCP gives up), idle
	// connections kept for 5 s (a thawed instance must not trust older ones), the
	// proxy of the environment. Redirects are never followed, whatever the Transport.
	Transport http.RoundTripper

	// Timeout caps one exchange from dialling to the last byte of the answer, next to
	// the deadline of the caller's context. 0 means 1 s.
	Timeout time.Duration

	// Logger hears of faults that cost no decision, on changes of state and at most
	// once a minute: a key that got no expiry, a counter that went backwards. Nil
	// means slog.Default().
	Logger *slog.Logger
}

// Format prints a Config without its Token.
func (c Config) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, c.String())
}

// String returns the Config without its Token and URL.
func (c Config) String() string {
	return fmt.Sprintf("upstash.Config{Timeout: %s, URL and Token not shown}", c.Timeout)
}

// MarshalText returns String, for loggers that print by encoding/json.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// FromEnv makes a store from the environment: UPSTASH_REDIS_REST_URL and
// UPSTASH_REDIS_REST_TOKEN, or, where neither is set, KV_REST_API_URL and
// KV_REST_API_TOKEN. One half of a pair is an error, and so is no pair: a limiter
// without its shared store would be a different one, silently.
func FromEnv() (*Store, error) {
	pairs := [...][2]string{
		{"UPSTASH_REDIS_REST_URL", "UPSTASH_REDIS_REST_TOKEN"},
		{"KV_REST_API_URL", "KV_REST_API_TOKEN"},
	}
	for _, p := range pairs {
		u, token := os.Getenv(p[0]), os.Getenv(p[1])
		switch {
		case u == "" && token == "":
			continue
		case u == "":
			return nil, misconfigured("environment variable %s is missing beside %s", p[0], p[1])
		case token == "":
			return nil, misconfigured("environment variable %s is missing beside %s", p[1], p[0])
		}
		s, err := New(Config{URL: u, Token: token})
		if err != nil {
			return nil, fmt.Errorf("environment variables %s and %s: %w", p[0], p[1], err)
		}
		return s, nil
	}
	return nil, misconfigured("environment variables %s and %s are missing (%s and %s would do too)",
		pairs[0][0], pairs[0][1], pairs[1][0], pairs[1][1])
}

// misconfigured is an error of construction. Its texts say what is wrong and never
// repeat a value: a token is easily pasted into the wrong field.
func misconfigured(format string, args ...any) error {
	return fmt.Errorf("upstash: %w: %s", stores.ErrMisconfigured, fmt.Sprintf(format, args...))
}

func checkTimeout(d time.Duration) (time.Duration, error) {
	if d < 0 {
		return 0, misconfigured("a Timeout of %s: want 0 (which means %s) or more", d, defaultTimeout)
	}
	if d == 0 {
		return defaultTimeout, nil
	}
	return d, nil
}

// checkURL returns the address of the endpoint's pipeline.
func checkURL(raw string) (*url.URL, error) {
	raw = strings.TrimSpace(raw)
	scheme, _, hasScheme := strings.Cut(raw, "://")
	switch scheme = strings.ToLower(scheme); {
	case raw == "":
		return nil, misconfigured("the URL is empty")
	case strings.ContainsAny(raw, `"'`):
		return nil, misconfigured("the URL has quotes in it: leave them out")
	case !hasScheme:
		return nil, misconfigured("the URL has no scheme: put https:// before it")
	case scheme == "redis" || scheme == "rediss":
		return nil, misconfigured("the URL is the one for TCP clients (%s://): take the one for REST, which begins with https://", scheme)
	case scheme != "https" && scheme != "http":
		return nil, misconfigured("the URL's scheme is not https")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, misconfigured("the URL can't be read") // url.Error would print it
	}
	switch {
	case u.Hostname() == "":
		return nil, misconfigured("the URL has no host")
	case u.User != nil:
		return nil, misconfigured("the URL has a user or password in it: put the token into Token")
	case u.RawQuery != "" || u.ForceQuery:
		return nil, misconfigured("the URL has a query in it: put the token into Token")
	case strings.Contains(raw, "#"):
		return nil, misconfigured("the URL has a fragment in it")
	case scheme == "http" && !loopback(u.Hostname()):
		return nil, misconfigured("the URL begins with http://, which would send the token in the clear: only a loopback host may")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, misconfigured("the URL's port is not 1 to 65535")
		}
	}
	if u.Path == "" {
		u.Path = "/" // JoinPath would make a relative path, and net/http send it
	}
	return u.JoinPath("pipeline"), nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// checkToken returns the token without blanks around it. What it refuses net/http
// would refuse at each request, or the server would with a text about passwords.
func checkToken(token string) (string, error) {
	token = strings.TrimSpace(token)
	switch {
	case token == "":
		return "", misconfigured("the token is empty")
	case len(token) >= 6 && strings.EqualFold(token[:6], "bearer") && (len(token) == 6 || token[6] == ' '):
		return "", misconfigured(`the token begins with "Bearer": leave that word out`)
	case strings.ContainsAny(token, "\"'`"):
		return "", misconfigured("the token has quotes in it: leave them out")
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' {
			return "", misconfigured("byte %d of the token is a blank or no printable ASCII", i)
		}
	}
	return token, nil
}
