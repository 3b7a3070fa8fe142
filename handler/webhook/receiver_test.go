package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
)

func retryAfter(t testing.TB, w *httptest.ResponseRecorder) int {
	t.Helper()
	n, err := strconv.Atoi(w.Header().Get("Retry-After"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, 1)
	return n
}

// problem checks what every refusal has in common.
func problem(t testing.TB, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	require.Equal(t, status, w.Code, w.Body)
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	var body struct {
		Type, Title, Detail string
		Status              int
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
	require.Equal(t, status, body.Status)
	require.Equal(t, http.StatusText(status), body.Title)
	require.NotEmpty(t, body.Detail)
	require.NotEmpty(t, body.Type)
}

func TestDelivery(t *testing.T) {
	var got Delivery
	rc := receiver(t, Config{Marks: onMemory(t)}, func(_ context.Context, d Delivery) error {
		got = d
		return nil
	})
	body := "{\"a\": \"\\u00e9\xff\x00\r\n\"}"
	h := signed(testSecret, "msg_1", body, time.Now())
	h.Set("X-Other", "kept")
	w := httptest.NewRecorder()
	rc.ServeHTTP(w, request(h, body, sender))
	require.Equal(t, 200, w.Code)
	require.Empty(t, w.Body.String())
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "msg_1", got.ID)
	require.Equal(t, body, string(got.Body), "byte for byte")
	require.Equal(t, "kept", got.Header.Get("X-Other"))
}

func TestStatuses(t *testing.T) {
	handled := &counter{}
	rc := receiver(t, Config{Marks: onMemory(t), MaxBody: 64}, handled.handle)
	now := time.Now()
	largest := strings.Repeat("x", 64)
	tests := []struct {
		name   string
		status int
		change func(r *http.Request)
	}{
		{"GET", 405, func(r *http.Request) { r.Method = "GET" }},
		{"a preflight", 405, func(r *http.Request) {
			r.Method = "OPTIONS"
			r.Header.Set("Origin", "https://example.com")
			r.Header.Set("Access-Control-Request-Method", "POST")
		}},
		{"a method by header", 405, func(r *http.Request) { r.Method = "PUT"; r.Header.Set("X-HTTP-Method-Override", "POST") }},
		{"unsigned", 401, func(r *http.Request) { r.Header = http.Header{} }},
		{"signed by another", 401, func(r *http.Request) { r.Header = signed(otherSecret, "msg_1", largest, now) }},
		{"too large", 413, func(r *http.Request) { *r = *request(r.Header, largest+"x", sender) }},
		{"too large, chunked", 413, func(r *http.Request) { *r = *request(r.Header, largest+"x", sender); r.ContentLength = -1 }},
		{"too large, lying", 413, func(r *http.Request) { *r = *request(r.Header, largest+"x", sender); r.ContentLength = 3 }},
		{"a large claim", 413, func(r *http.Request) { r.ContentLength = 1 << 40 }},
		{"cut", 400, func(r *http.Request) { r.Body = http.NoBody; r.Body = cutBody{} }},
		{"no body at all", 401, func(r *http.Request) { r.Body = nil }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := request(signed(testSecret, "msg_1", largest, now), largest, sender)
			test.change(r)
			w := httptest.NewRecorder()
			rc.ServeHTTP(w, r)
			problem(t, w, test.status)
			if test.status == 405 {
				require.Equal(t, "POST", w.Header().Get("Allow"))
			}
		})
	}
	require.Zero(t, handled.n.Load())
	w := httptest.NewRecorder()
	rc.ServeHTTP(w, request(signed(testSecret, "msg_1", largest, now), largest, sender))
	require.Equal(t, 200, w.Code, "none of these took the mark")

	var none *Receiver
	for _, rc := range []*Receiver{none, {}} {
		w = deliver(rc, "msg_1")
		problem(t, w, 503)
	}
}

// A length is a claim: it costs no memory before the bytes are there, and a body is not
// copied again and again as it grows.
func TestBodiesTakeTheirRoom(t *testing.T) {
	const most = 1 << 20
	rc := receiver(t, Config{MaxBody: most}, (&counter{}).handle)
	room := func(sent int, claim int64) uint64 {
		r := request(http.Header{}, strings.Repeat("x", sent), sender)
		r.ContentLength = claim
		w := httptest.NewRecorder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rc.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		require.Contains(t, []int{401, 429}, w.Code)
		return after.TotalAlloc - before.TotalAlloc
	}
	room(0, 0) // what is made once
	require.LessOrEqual(t, room(1, most), uint64(most/8))
	require.LessOrEqual(t, room(most, most), uint64(2*most))
	room(most, -1)
	for _, sent := range []int{0, 1, trusted - 1, trusted, trusted + 1, most - 1, most} {
		body := strings.Repeat("y", sent)
		for _, claim := range []int64{-1, int64(sent), 1, most} {
			r := request(http.Header{}, body, sender)
			r.ContentLength = claim
			got, status := rc.read(httptest.NewRecorder(), r)
			require.Zero(t, status)
			require.Equal(t, body, string(got))
		}
	}
}

type cutBody struct{}

func (cutBody) Read([]byte) (int, error) { return 0, errors.New("unexpected EOF") }
func (cutBody) Close() error             { return nil }

// Without marks, and without an id, there is no replay protection, and all else is.
func TestWithoutMarks(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no marks": {},
		"no id":    {Marks: onMemory(t), Scheme: custom(func(http.Header, []byte, time.Time) (string, error) { return "", nil })},
	} {
		t.Run(name, func(t *testing.T) {
			handled := &counter{}
			cfg.Valid = onMemory(t, handler.Policy{Name: "all", Limit: stores.FixedWindow(3, time.Minute), Key: handler.Everyone()})
			rc := receiver(t, cfg, handled.handle)
			for _, want := range []int{200, 200, 200, 429} {
				require.Equal(t, want, deliver(rc, "msg_1").Code)
			}
			require.EqualValues(t, 3, handled.n.Load())
		})
	}
}

// A scheme of the user's own is asked as any other, and its error is told to nobody.
func TestOwnScheme(t *testing.T) {
	var err error
	rc := receiver(t, Config{Marks: onMemory(t), Scheme: custom(func(h http.Header, body []byte, _ time.Time) (string, error) {
		return h.Get("webhook-id") + string(body), err
	})}, (&counter{}).handle)
	require.Equal(t, 200, deliver(rc, "msg_1").Code)
	err = errCustom
	w := deliver(rc, "msg_2")
	problem(t, w, 401)
	require.NotContains(t, w.Body.String(), errCustom.Error())
}

func TestValidLimits(t *testing.T) {
	byTenant := handler.Policy{Name: "tenant", Limit: stores.FixedWindow(2, time.Minute), Key: handler.ByHeader("X-Tenant")}
	handled := &counter{}
	rc := receiver(t, Config{Marks: onMemory(t), Valid: onMemory(t, byTenant)}, handled.handle)
	send := func(id, tenant string) *httptest.ResponseRecorder {
		h := signed(testSecret, id, "{}", time.Now())
		h.Set("X-Tenant", tenant)
		w := httptest.NewRecorder()
		rc.ServeHTTP(w, request(h, "{}", sender))
		return w
	}
	require.Equal(t, `"tenant";r=1;t=60`, send("a1", "a").Header().Get("RateLimit"))
	require.Equal(t, 200, send("a2", "a").Code)
	w := send("a3", "a")
	require.Equal(t, 429, w.Code)
	require.Contains(t, w.Body.String(), `"violated-policies":["tenant"]`)
	require.Equal(t, 200, send("b1", "b").Code, "another sender is not limited")
	require.EqualValues(t, 3, handled.n.Load())
	require.Equal(t, 200, send("a1", "a").Code, "who asks again for what is done is not limited")
	require.Equal(t, 429, send("a3", "a").Code, "what was refused is not busy")
}

// What a sender is told to wait is enough, for the limit and for the busy mark.
func TestWaitingAsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handled := &counter{}
		rc := receiver(t, Config{Marks: onMemory(t), Valid: onMemory(t, handler.Policy{Name: "all", Limit: stores.FixedWindow(1, 47*time.Second), Key: handler.Everyone(), ShowQuota: true})}, handled.handle)
		require.Equal(t, 200, deliver(rc, "msg_1").Code)
		w := deliver(rc, "msg_2")
		require.Equal(t, 429, w.Code)
		time.Sleep(time.Duration(retryAfter(t, w)) * time.Second)
		require.Equal(t, 200, deliver(rc, "msg_2").Code)
		require.EqualValues(t, 2, handled.n.Load())
	})
}

// With a Signal policy the handler runs and may ask what the guard thinks.
func TestSignal(t *testing.T) {
	var verdicts []bool
	rc := receiver(t, Config{Valid: onMemory(t, handler.Policy{Name: "all", Limit: stores.FixedWindow(1, time.Minute), Key: handler.Everyone(), Mode: handler.Signal})},
		func(ctx context.Context, d Delivery) error {
			v, ok := handler.FromContext(ctx)
			require.True(t, ok)
			verdicts = append(verdicts, v.Allowed)
			_, ok = ctx.Deadline()
			require.True(t, ok, "the handler's time is that of a delivery")
			return nil
		})
	require.Equal(t, 200, deliver(rc, "msg_1").Code)
	require.Equal(t, 200, deliver(rc, "msg_2").Code)
	require.Equal(t, []bool{true, false}, verdicts)
}

// Keys that read the body find it.
func TestBodyIsThereForKeys(t *testing.T) {
	byBody := handler.ByFunc(func(r *http.Request) string {
		var event struct{ ID string }
		if json.NewDecoder(r.Body).Decode(&event) != nil {
			return ""
		}
		return event.ID
	})
	rc := receiver(t, Config{Valid: onMemory(t, handler.Policy{Name: "body", Limit: stores.FixedWindow(1, time.Minute), Key: byBody})},
		func(_ context.Context, d Delivery) error {
			require.Equal(t, `{"id":"`+d.ID+`"}`, string(d.Body))
			return nil
		})
	require.Equal(t, 200, deliver(rc, "msg_1").Code)
	require.Equal(t, 429, deliver(rc, "msg_1").Code)
	require.Equal(t, 200, deliver(rc, "msg_2").Code)
}

// An old delivery is refused however often the clock is set, and a delivery that is done
// stays done when the clock is set back.
func TestClockSteps(t *testing.T) {
	var at time.Time
	scheme := Standard(testSecret)
	handled := &counter{}
	rc := receiver(t, Config{Marks: onMemory(t), Scheme: custom(func(h http.Header, body []byte, _ time.Time) (string, error) {
		return scheme.Verify(h, body, at)
	})}, handled.handle)
	signedAt := time.Unix(1_700_000_000, 0)
	send := func(now time.Time) int {
		at = now
		w := httptest.NewRecorder()
		rc.ServeHTTP(w, request(signed(testSecret, "msg_1", "{}", signedAt), "{}", sender))
		return w.Code
	}
	require.Equal(t, 401, send(signedAt.Add(-time.Hour)))
	require.Equal(t, 200, send(signedAt))
	require.Equal(t, 401, send(signedAt.Add(time.Hour)))
	require.Equal(t, 200, send(signedAt.Add(-tolerance)))
	require.EqualValues(t, 1, handled.n.Load())
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	for wait, want := range map[time.Duration]int{
		1: 1, time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, 35 * time.Second: 35, 0: 1,
	} {
		w := httptest.NewRecorder()
		answer(w, http.StatusConflict, wait)
		require.Equal(t, want, retryAfter(t, w), wait)
	}
}
