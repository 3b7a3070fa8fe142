package dynamo

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// Whatever retries a client came with, a hit whose answer is lost is sent once.
// With the SDK's own it would be counted four times.
func TestAnyClientIsSafe(t *testing.T) {
	for name, set := range map[string]func(*dynamodb.Options){
		"default":        func(*dynamodb.Options) {},
		"ten attempts":   func(o *dynamodb.Options) { o.RetryMaxAttempts = 10 },
		"two attempts":   func(o *dynamodb.Options) { o.RetryMaxAttempts = 2 },
		"adaptive":       func(o *dynamodb.Options) { o.Retryer = retry.NewAdaptiveMode() },
		"its own":        func(o *dynamodb.Options) { o.Retryer = retry.AddWithMaxAttempts(retry.NewStandard(), 7) },
		"no retries":     func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} },
		"retry mode set": func(o *dynamodb.Options) { o.RetryMode = aws.RetryModeAdaptive },
	} {
		t.Run(name, func(t *testing.T) {
			server := dynamotest.New(t)
			for transport, client := range map[string]*dynamodb.Client{"memory": server.Client(set), "network": server.Network(t, set)} {
				for manner, do := range map[string]dynamotest.Manner{
					"cut":      dynamotest.DropAfter(),
					"500":      dynamotest.FailAfter(500, "InternalServerError", ""),
					"cut body": dynamotest.CutBody(),
					"throttle": dynamotest.Throttle("ThrottlingException"),
				} {
					s, h := newStore(t, client), hit(transport+manner, 5, time.Minute)
					server.ClearFaults()
					server.SetFault(dynamotest.Fault{Do: do})
					server.ResetCalls()
					began := time.Now()
					_, err := s.Take(t.Context(), h)
					require.Error(t, err)
					require.Equal(t, 1, server.Calls(""))
					require.Less(t, time.Since(began), time.Second, "no back-off")
					if w, there := stored(t, server, h.Key); there {
						require.Equal(t, int64(1), w.n)
					}
				}
			}
		})
	}
}

// deadConn is a pooled connection that died while the process was frozen: what is
// written to it fails, after a part of it perhaps.
type deadConn struct {
	net.Conn
	dead *atomic.Bool
	part int
}

func (c *deadConn) Write(p []byte) (int, error) {
	if !c.dead.Load() {
		return c.Conn.Write(p)
	}
	n, _ := c.Conn.Write(p[:min(c.part, len(p))])
	return n, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
}

func TestDeadIdleConnection(t *testing.T) {
	for _, part := range []int{0, 100} {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			server := dynamotest.New(t)
			var dials atomic.Int32
			var dead atomic.Bool
			transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				if dials.Add(1) == 1 {
					return &deadConn{Conn: conn, dead: &dead, part: part}, err
				}
				return conn, err
			}}
			t.Cleanup(transport.CloseIdleConnections)
			s, h := newStore(t, dynamotest.NewClient(server.Listen(t), transport)), hit("k", 5, time.Minute)
			require.Equal(t, 4, take(t, s, h).Remaining)
			dead.Store(true)
			require.Equal(t, 3, take(t, s, h).Remaining, "resent at once, on a new connection")
			require.Equal(t, int32(2), dials.Load())
			require.Equal(t, 2, server.Calls(""))
			w, _ := stored(t, server, h.Key)
			require.Equal(t, int64(2), w.n)
		})
	}
}

// The dead connection is replaced by one that can't be made: still nothing was sent.
func TestDeadConnectionOnADeadNetwork(t *testing.T) {
	server := dynamotest.New(t)
	var dead atomic.Bool
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dead.Load() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &deadConn{Conn: conn, dead: &dead}, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	s, h := newStore(t, dynamotest.NewClient(server.Listen(t), transport)), hit(marker, 5, time.Minute)
	take(t, s, h)
	dead.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := s.Take(ctx, h)
	require.True(t, asFault(t, err).Definite, "%v", err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, 1, server.Calls(""))
}

func TestNeverSent(t *testing.T) {
	op := func(op string, err error) error { return fmt.Errorf("wrapped: %w", &net.OpError{Op: op, Err: err}) }
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"dial refused", op("dial", syscall.ECONNREFUSED), true},
		{"dial timed out", op("dial", context.DeadlineExceeded), false},
		{"write", op("write", syscall.EPIPE), true},
		{"write timed out", op("write", syscall.ETIMEDOUT), false},
		{"write of the body", op("readfrom", syscall.ECONNRESET), true},
		{"proxy", op("proxyconnect", errors.New("refused")), true},
		{"read", op("read", syscall.ECONNRESET), false},
		{"alert after the request", op("remote error", errors.New("tls: internal error")), false},
		{"EOF", io.EOF, false},
		{"half an answer", io.ErrUnexpectedEOF, false},
		{"no such host", &net.DNSError{Err: "no such host", IsNotFound: true}, true},
		{"lookup timed out", &net.DNSError{Err: "i/o timeout", IsTimeout: true}, false},
		{"closed while idle", errors.New(`Post "x": http: server closed idle connection`), true},
		{"cancelled", &smithy.CanceledError{Err: op("dial", syscall.ECONNREFUSED)}, false},
	} {
		require.Equal(t, tt.want, neverSent(tt.err), tt.name)
		require.Equal(t, tt.want, onceMore{}.IsErrorRetryable(tt.err), tt.name)
	}
}

// What never reached a connection was certainly not counted, timeouts included; that is
// what tells a dead network from a slow answer.
func TestDefiniteOverANetwork(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	untrusted := httptest.NewUnstartedServer(nil)
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	blackhole := dynamotest.New(t)
	blackhole.SetBlackhole(true)
	for name, client := range map[string]*dynamodb.Client{
		"closed port":     dynamotest.NewClient(closed.URL, new(http.Transport)),
		"no such host":    dynamotest.NewClient("http://dynamodb.invalid", &http.Transport{DialContext: noSuchHost}),
		"bad certificate": dynamotest.NewClient(untrusted.URL, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool()}}),
		"silent network":  blackhole.Network(t),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := newStore(t, client).Take(ctx, hit(marker, 5, time.Minute))
			require.ErrorIs(t, err, stores.ErrUnavailable)
			require.True(t, asFault(t, err).Definite, "%v", err)
		})
	}
}

// roundTripper is a transport that reports nothing to traces.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Where no trace says how far a call got, the error has to, and silence means: perhaps.
func TestDefiniteWithoutTrace(t *testing.T) {
	for op, definite := range map[string]bool{"dial": true, "write": true, "read": false} {
		transport := roundTripper(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: op, Net: "tcp", Err: syscall.ECONNRESET}
		})
		_, err := newStore(t, dynamotest.NewClient("http://dynamodb.test", transport)).Take(t.Context(), hit(marker, 5, time.Minute))
		require.ErrorIs(t, err, stores.ErrUnavailable)
		require.Equal(t, definite, asFault(t, err).Definite, op)
	}
	hanging := roundTripper(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := newStore(t, dynamotest.NewClient("http://dynamodb.test", hanging)).Take(ctx, hit(marker, 5, time.Minute))
	require.False(t, asFault(t, err).Definite)
}

func noSuchHost(context.Context, string, string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}
}

// A client that can't even make a request is misconfigured, and nothing was counted.
func TestFailureBeforeSending(t *testing.T) {
	server := dynamotest.New(t)
	for name, set := range map[string]func(*dynamodb.Options){
		"credentials fail": func(o *dynamodb.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{}, errors.New("no profile for " + marker)
			})
		},
		"no region": func(o *dynamodb.Options) { o.Region, o.BaseEndpoint = "", nil },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newStore(t, server.Client(set)).Take(t.Context(), hit(marker, 5, time.Minute))
			require.ErrorIs(t, err, stores.ErrMisconfigured)
			require.True(t, fault.Definite(err))
			requireSecretless(t, err)
		})
	}
	require.Zero(t, server.Calls(""))
}

// A local clock that is so far off that the signature is refused heals within the call: the
// server's answer carries its time, and it did not carry the request out.
func TestSignatureOutOfTime(t *testing.T) {
	for _, code := range []string{"InvalidSignatureException", "RequestTimeTooSkewed", "SignatureDoesNotMatch"} {
		synctest.Test(t, func(t *testing.T) {
			server := dynamotest.New(t)
			refuse := dynamotest.Fail(400, code, "Signature expired")
			server.SetFault(dynamotest.Fault{Times: 1, Do: func(ctx context.Context, apply func() dynamotest.Reply) (dynamotest.Reply, error) {
				reply, err := refuse(ctx, apply)
				reply.Header.Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
				return reply, err
			}})
			s, h := newStore(t, server.Client()), hit("k", 5, time.Minute)
			require.Equal(t, 4, take(t, s, h).Remaining)
			require.Equal(t, 2, server.Calls(""))
			w, _ := stored(t, server, h.Key)
			require.Equal(t, int64(1), w.n)
		})
	}
}
