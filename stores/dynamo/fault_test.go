package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

func asFault(t testing.TB, err error) *fault.Error {
	t.Helper()
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	requireSecretless(t, err)
	return f
}

// marker is the key in tests of errors: no error may repeat it.
const marker = "sallyport:login:client-7f3a"

const arn = "arn:aws:dynamodb:us-east-1:123456789012:table/" + dynamotest.Table

func requireSecretless(t testing.TB, err error) {
	t.Helper()
	for _, secret := range []string{
		marker, "arn:", "123456789012", dynamotest.AccessKeyID, dynamotest.SecretAccessKey, dynamotest.SessionToken, "REQUESTID",
	} {
		require.NotContains(t, err.Error(), secret)
	}
	require.LessOrEqual(t, len(err.Error()), 300)
	for _, c := range []byte(err.Error()) {
		require.True(t, c >= 0x20 && c <= 0x7e, "%q", err.Error())
	}
}

type faultCase struct {
	name     string
	do       dynamotest.Manner
	kind     error
	definite bool
	lasting  bool
	keyOnly  bool
	stored   int64 // hits in the table afterwards: 0 or 1
	calls    int   // that reached the server; 0 means 1
}

func faultCases() []faultCase {
	fail := dynamotest.Fail
	const bad = http.StatusBadRequest
	stop := "you may not: user: " + arn + " on " + marker + " request REQUESTID"
	throttle := dynamotest.Throttle
	const keyRange, table, account = "TableWriteKeyRangeThroughputExceeded", "TableWriteMaxOnDemandThroughputExceeded", "TableWriteAccountLimitExceeded"
	lie := func(name string, v any) dynamotest.Manner {
		return dynamotest.Lie(func(a map[string]any) {
			if a[name] = v; v == nil {
				delete(a, name)
			}
		})
	}
	num := func(s string) any { return map[string]any{"N": s} }
	cases := []faultCase{
		{name: "cut before it was carried out", do: dynamotest.DropBefore(), kind: stores.ErrUnavailable},
		{name: "cut after it was carried out", do: dynamotest.DropAfter(), kind: stores.ErrUnavailable, stored: 1},
		{name: "silence", do: dynamotest.Hang(), kind: stores.ErrUnavailable},
		{name: "silence after it was carried out", do: dynamotest.HangAfter(), kind: stores.ErrUnavailable, stored: 1},
		{name: "body stalls", do: dynamotest.StallBody(), kind: stores.ErrUnavailable, stored: 1},
		{name: "body is cut", do: dynamotest.CutBody(), kind: stores.ErrUnavailable, stored: 1},
		{name: "answer comes too late", do: dynamotest.Slow(time.Hour), kind: stores.ErrUnavailable},

		{name: "throttled", do: throttle("ThrottlingException"), kind: stores.ErrThrottled, definite: true},
		{name: "throttled, provisioned", do: throttle("ProvisionedThroughputExceededException"), kind: stores.ErrThrottled, definite: true},
		{name: "throttled, request limit", do: throttle("RequestLimitExceeded"), kind: stores.ErrThrottled, definite: true},
		{name: "throttled, table", do: throttle("ThrottlingException", table), kind: stores.ErrThrottled, definite: true},
		{name: "throttled, account", do: throttle("RequestLimitExceeded", account), kind: stores.ErrThrottled, definite: true},
		{name: "throttled, key", do: throttle("ThrottlingException", keyRange), kind: stores.ErrHotKey, definite: true, keyOnly: true},
		{name: "throttled, key, provisioned", do: throttle("ProvisionedThroughputExceededException", keyRange), kind: stores.ErrHotKey, definite: true, keyOnly: true},
		{name: "throttled, key, request limit", do: throttle("RequestLimitExceeded", keyRange), kind: stores.ErrHotKey, definite: true, keyOnly: true},
		{name: "throttled, key and table", do: throttle("ThrottlingException", keyRange, table), kind: stores.ErrThrottled, definite: true},
		{name: "throttled by something else", do: fail(http.StatusTooManyRequests, "SlowDown", stop), kind: stores.ErrThrottled, definite: true},

		{name: "500", do: fail(500, "InternalServerError", stop), kind: stores.ErrUnavailable},
		{name: "500 although carried out", do: dynamotest.FailAfter(500, "InternalServerError", stop), kind: stores.ErrUnavailable, stored: 1},
		{name: "503", do: fail(503, "ServiceUnavailable", stop), kind: stores.ErrUnavailable},
		{name: "502 of a proxy", do: dynamotest.Raw(502, "text/html", "<html>"+arn), kind: stores.ErrUnavailable},
		{name: "404 of a proxy", do: dynamotest.Raw(404, "text/html", "<html>"+arn), kind: stores.ErrMisconfigured, definite: true, lasting: true},
		{name: "redirect", do: dynamotest.Raw(307, "text/html", ""), kind: stores.ErrUnavailable},
		{name: "odd exception", do: fail(bad, "Odd\nException"+marker, stop), kind: stores.ErrUnavailable},
		{name: "item in a transaction", do: fail(bad, "TransactionConflictException", stop), kind: stores.ErrUnavailable, definite: true, keyOnly: true},
		{name: "wrong type in the item", do: fail(bad, "ValidationException", "An operand in the update expression has an incorrect data type"), kind: stores.ErrMisconfigured, definite: true, lasting: true, keyOnly: true},
		{name: "key in the message", do: fail(bad, "ValidationException", "a bad key "+marker), kind: stores.ErrMisconfigured, definite: true, lasting: true},
		{name: "long message", do: fail(bad, "ValidationException", string(make([]byte, 10_000))), kind: stores.ErrMisconfigured, definite: true, lasting: true},

		{name: "no JSON", do: dynamotest.Raw(200, "application/x-amz-json-1.0", "<html>"+arn), kind: stores.ErrUnavailable},
		{name: "empty body", do: dynamotest.Raw(200, "application/x-amz-json-1.0", ""), kind: stores.ErrUnavailable},
		{name: "empty object", do: dynamotest.Raw(200, "application/x-amz-json-1.0", "{}"), kind: stores.ErrUnavailable},
		{name: "condition failed on nothing", do: fail(bad, "ConditionalCheckFailedException", ""), kind: stores.ErrMisconfigured, definite: true, lasting: true},
		{name: "lie: no count", do: lie("n", nil), kind: stores.ErrUnavailable, stored: 1},
		{name: "lie: no end", do: lie("e", nil), kind: stores.ErrUnavailable, stored: 1},
		{name: "lie: count is text", do: lie("n", map[string]any{"S": "1"}), kind: stores.ErrUnavailable, stored: 1},
		{name: "lie: count is negative", do: lie("n", num("-1")), kind: stores.ErrUnavailable, stored: 1},
		{name: "lie: count is 0", do: lie("n", num("0")), kind: stores.ErrUnavailable, stored: 1},
		{name: "lie: count is no number", do: lie("n", num("NaN")), kind: stores.ErrUnavailable, stored: 1},
		{name: "lie: count above the quota", do: lie("n", num("6")), kind: stores.ErrUnavailable, stored: 1},
		{name: "lie: end has passed", do: lie("e", num("1")), kind: stores.ErrUnavailable, stored: 1},
		{name: "lie: end is huge", do: lie("e", num("9223372036854775808")), kind: stores.ErrUnavailable, stored: 1},
	}
	for code := range misconfigured {
		cases = append(cases, faultCase{name: code, do: fail(bad, code, stop), kind: stores.ErrMisconfigured, definite: true, lasting: true})
	}
	return cases
}

// The fault matrix: each fault has its kind, no fault counts a hit
// twice or makes a second request, and no error tells a secret.
func TestFaultMatrix(t *testing.T) {
	for _, tt := range faultCases() {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := dynamotest.New(t)
				s, h := newStore(t, server.Client()), hit(marker, 5, time.Minute)
				server.SetFault(dynamotest.Fault{Do: tt.do})
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()

				d, err := s.Take(ctx, h)
				require.Zero(t, d, "a failure is no decision")
				f := asFault(t, err)
				require.ErrorIs(t, err, tt.kind)
				for _, kind := range []error{stores.ErrUnavailable, stores.ErrThrottled, stores.ErrMisconfigured, stores.ErrHotKey} {
					require.Equal(t, errors.Is(tt.kind, kind), errors.Is(err, kind), "%v: %v", kind, err)
				}
				require.Equal(t, []bool{tt.definite, tt.lasting, tt.keyOnly}, []bool{f.Definite, f.Lasting, f.KeyOnly}, "definite, lasting, key only: %v", err)
				require.Equal(t, max(tt.calls, 1), server.Calls(""), "no second request")
				w, _ := stored(t, server, h.Key)
				require.Equal(t, tt.stored, w.n)

				// The store itself is none the worse for it.
				server.ClearFaults()
				require.Equal(t, 4-int(tt.stored), take(t, s, h).Remaining)
			})
		})
	}
}

// The same faults meet an instance that knows the key, and the other methods.
func TestFaultMatrixOnAnOpenWindow(t *testing.T) {
	for _, tt := range faultCases() {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := dynamotest.New(t)
				s, h := newStore(t, server.Client()), hit(marker, 5, time.Minute)
				take(t, s, h)
				server.SetFault(dynamotest.Fault{Do: tt.do})
				for _, method := range []struct {
					name string
					do   func(context.Context) error
				}{
					{"Take", func(ctx context.Context) error { _, err := s.Take(ctx, h); return err }},
					{"Peek", func(ctx context.Context) error { _, err := s.Peek(ctx, h); return err }},
					{"Refund", func(ctx context.Context) error { return s.Refund(ctx, h) }},
					{"Reset", func(ctx context.Context) error { return s.Reset(ctx, h) }},
				} {
					before, _ := stored(t, server, h.Key)
					server.ResetCalls()
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
					err := method.do(ctx)
					cancel()
					require.LessOrEqual(t, server.Calls(""), maxCalls, method.name)
					after, _ := stored(t, server, h.Key)
					require.LessOrEqual(t, after.n-before.n, int64(1), method.name)
					if err != nil {
						requireSecretless(t, err)
					}
				}
			})
		})
	}
}

// A success that shows what the condition can't have let pass is no decision.
func TestLiesAboutAnOpenWindow(t *testing.T) {
	for name, value := range map[string]string{"n 0": "0", "n 6": "6", "n -1": "-1", "n 9007199254740992": "9007199254740992", "e 1": "1", "e -1": "-1"} {
		synctest.Test(t, func(t *testing.T) {
			server := dynamotest.New(t)
			s, h := newStore(t, server.Client()), hit(marker, 5, time.Minute)
			take(t, s, h)
			server.SetFault(dynamotest.Fault{Do: dynamotest.Lie(func(a map[string]any) { a[name[:1]] = map[string]any{"N": value} })})
			d, err := s.Take(t.Context(), h)
			require.Zero(t, d, name)
			require.ErrorIs(t, err, stores.ErrUnavailable, name)
			require.False(t, asFault(t, err).Definite, "it was counted")
		})
	}
}

func TestUnreachable(t *testing.T) {
	for name, set := range map[string]func(*dynamotest.Server, bool){
		"refused":    (*dynamotest.Server).SetDown,
		"blackholed": (*dynamotest.Server).SetBlackhole,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := dynamotest.New(t)
				s, h := newStore(t, server.Client()), hit(marker, 5, time.Minute)
				set(server, true)
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				_, err := s.Take(ctx, h)
				f := asFault(t, err)
				require.ErrorIs(t, err, stores.ErrUnavailable)
				require.True(t, f.Definite, "nothing was sent: %v", err)
				require.False(t, f.Lasting || f.KeyOnly)
				require.Zero(t, server.Calls(""))
				set(server, false)
				require.Equal(t, 4, take(t, s, h).Remaining)
			})
		})
	}
}

// The caller's context: done before anything was sent, its error comes back as it is;
// later, the hit may have been counted, and the error still says why.
func TestCallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		s, h := newStore(t, server.Client()), hit(marker, 5, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Take(ctx, h)
		require.Equal(t, context.Canceled, err)
		require.Zero(t, server.Calls(""))

		server.SetFault(dynamotest.Fault{Do: dynamotest.HangAfter()})
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = s.Take(ctx, h)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, stores.ErrUnavailable)
		require.False(t, asFault(t, err).Definite)

		began := time.Now()
		_, err = s.Take(context.Background(), h)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, undatedTimeout, time.Since(began), "no deadline, and still an end")

		// Two calls were needed, and the first one said that nothing was counted.
		server.ClearFaults()
		cold := newStore(t, server.Client())
		server.SetFault(dynamotest.Fault{Skip: 1, Do: dynamotest.DropBefore()})
		_, err = cold.Take(t.Context(), h)
		require.ErrorIs(t, err, stores.ErrUnavailable)
		require.False(t, fault.Definite(err))
	})
}

// Throttling of one key leaves others alone.
func TestOneHotKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		s := newStore(t, server.Client())
		hot, other := hit("hot", 5, time.Minute), hit("other", 5, time.Minute)
		server.SetFault(dynamotest.Fault{Key: hot.Key, Do: dynamotest.Throttle("ThrottlingException", "TableWriteKeyRangeThroughputExceeded")})
		for i := range 10 {
			_, err := s.Take(t.Context(), hot)
			require.ErrorIs(t, err, stores.ErrHotKey)
			require.ErrorIs(t, err, stores.ErrThrottled)
			if i < 5 {
				require.True(t, take(t, s, other).Allowed)
			}
		}
		require.Equal(t, map[string]int{"UpdateItem": 15}, server.Actions())
	})
}

// A refusal is a decision: it never looks like a failure, and a failure never
// like one, also while both happen.
func TestRefusalsAreNoFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		h := hit("k", 2, time.Minute)
		server.SetFault(dynamotest.Fault{Do: dynamotest.Slow(400 * time.Millisecond)})
		var instances []*Store
		for range 5 {
			instances = append(instances, newStore(t, server.Client()))
		}
		allowed := 0
		for i := range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			d, err := instances[i%5].Take(ctx, h)
			cancel()
			require.NoError(t, err, fmt.Sprint("hit ", i))
			if d.Allowed {
				allowed++
			}
		}
		require.Equal(t, 2, allowed)
	})
}
