package webhook

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// forged is a delivery of somebody who does not know the secret.
func forged(rc http.Handler, from string, i int) *httptest.ResponseRecorder {
	body := fmt.Sprintf(`{"n":%d}`, i)
	h := signed(otherSecret, fmt.Sprint("msg_", i), body, time.Now())
	h.Set("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i%256))
	w := httptest.NewRecorder()
	rc.ServeHTTP(w, request(h, body, from))
	return w
}

// everyone is the harshest Valid: one quota for all.
func everyone(quota int) handler.Policy {
	return handler.Policy{Name: "valid", Limit: stores.FixedWindow(quota, time.Hour), Key: handler.Everyone()}
}

// A flood of forgeries, also from the sender's own address, costs the store no call and
// the sender no delivery.
func TestForgeriesBesideTheSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore(t)
		handled := &counter{}
		rc := receiver(t, Config{Marks: guardOver(t, store), Valid: guardOver(t, store, everyone(100))}, handled.handle)
		honest := 0
		statuses := map[int]int{}
		for i := range 2000 {
			before := store.made()
			w := forged(rc, sender, i)
			statuses[w.Code]++
			problem(t, w, w.Code)
			forged(rc, fmt.Sprintf("198.51.%d.%d", i/256, i%256), i)
			require.Equal(t, before, store.made(), "a forgery made a call")
			if i%50 == 0 {
				require.Equal(t, 200, deliver(rc, fmt.Sprint("msg_", i)).Code)
				honest++
			}
		}
		require.Equal(t, map[int]int{401: 10, 429: 1990}, statuses)
		require.EqualValues(t, 40, honest)
		require.EqualValues(t, honest, handled.n.Load())
		r := request(http.Header{}, "", sender)
		for i := range 2 * maxSources {
			r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)
			rc.failures.count(r)
		}
		require.Equal(t, maxSources, rc.failures.counted.Len())

		w := forged(rc, sender, 1)
		problem(t, w, 429)
		time.Sleep(time.Duration(retryAfter(t, w)) * time.Second)
		problem(t, forged(rc, sender, 1), 401)
	})
}

// Sources are told apart as clients are: IPv6 by /64, IPv4 whole, and by what the guard
// believes rather than by what is written into a header.
func TestSourcesOfForgeries(t *testing.T) {
	tests := []struct {
		name string
		from func(i int) string
		want map[int]int
	}{
		{"one /64", func(i int) string { return fmt.Sprintf("[2001:db8:1:2::%x]", i) }, map[int]int{401: 10, 429: 30}},
		{"many /64", func(i int) string { return fmt.Sprintf("[2001:db8:1:%x::1]", i) }, map[int]int{401: 40}},
		{"mapped", func(i int) string { return []string{"192.0.2.9", "[::ffff:192.0.2.9]"}[i%2] }, map[int]int{401: 10, 429: 30}},
		{"no address", func(i int) string { return strings.Repeat("x", i) }, map[int]int{401: 10, 429: 30}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			addressless, err := handler.New(handler.Config{Store: newSharedStore(t), Policies: []handler.Policy{
				{Name: "unused", Limit: stores.FixedWindow(1, time.Minute), Key: handler.Manual()},
			}})
			require.NoError(t, err)
			for _, cfg := range []Config{{}, {Valid: onMemory(t, everyone(1))}, {Marks: onMemory(t)}, {Marks: addressless}} {
				rc := receiver(t, cfg, (&counter{}).handle)
				statuses := map[int]int{}
				for i := range 40 {
					statuses[forged(rc, test.from(i), i).Code]++
				}
				require.Equal(t, test.want, statuses)
				require.Equal(t, 200, deliver(rc, "msg_1").Code)
			}
		})
	}
}

// Behind a proxy the peer is the proxy. Then a guard knows whose request it is, and one
// forger is not told to wait for another; a header that nobody believes makes no new source.
func TestSourcesBehindAProxy(t *testing.T) {
	behind := func(forwarded func(i int) string) map[int]int {
		m, err := memory.New(memory.Config{})
		require.NoError(t, err)
		g, err := handler.New(handler.Config{Store: m, ClientIP: handler.TrustedHops(1), Policies: []handler.Policy{everyone(1)}})
		require.NoError(t, err)
		rc := receiver(t, Config{Valid: g}, (&counter{}).handle)
		statuses := map[int]int{}
		for i := range 30 {
			r := request(signed(otherSecret, "msg_1", "{}", time.Now()), "{}", "10.0.0.1")
			r.Header.Set("X-Forwarded-For", forwarded(i))
			w := httptest.NewRecorder()
			rc.ServeHTTP(w, r)
			statuses[w.Code]++
		}
		return statuses
	}
	require.Equal(t, map[int]int{401: 30}, behind(func(i int) string { return fmt.Sprintf("198.51.100.1, 203.0.113.%d", i) }))
	require.Equal(t, map[int]int{401: 10, 429: 20}, behind(func(i int) string { return fmt.Sprintf("203.0.113.%d, 198.51.100.1", i) }))
	require.Equal(t, map[int]int{401: 10, 429: 20}, behind(func(i int) string { return "unknown" }))
}

// Why a delivery is refused can't be told from the answer.
func TestNoOracle(t *testing.T) {
	now := time.Now()
	right := signed(testSecret, "msg_1", "{}", now)
	answers := map[string]bool{}
	for name, change := range map[string]func(h http.Header){
		"wrong secret": func(h http.Header) {
			h.Set("webhook-signature", signed(otherSecret, "msg_1", "{}", now).Get("webhook-signature"))
		},
		"old": func(h http.Header) {
			for name, lines := range signed(testSecret, "msg_1", "{}", now.Add(-time.Hour)) {
				h[name] = lines
			}
		},
		"no header":   func(h http.Header) { h.Del("webhook-id") },
		"two headers": func(h http.Header) { h.Add("webhook-id", "msg_1") },
		"malformed":   func(h http.Header) { h.Set("webhook-signature", "v1,") },
	} {
		h := right.Clone()
		change(h)
		w := httptest.NewRecorder()
		receiver(t, Config{Marks: onMemory(t)}, (&counter{}).handle).ServeHTTP(w, request(h, "{}", sender))
		require.Equal(t, 401, w.Code, name)
		answers[fmt.Sprint(w.Code, w.Header(), w.Body)] = true
	}
	require.Len(t, answers, 1)
}
