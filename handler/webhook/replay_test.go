package webhook

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Who captured a delivery can't use up its sender's quota with it, nor run up the bill: what
// is done is known in memory.
func TestReplayStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore(t)
		handled := &counter{}
		list := make([]*Receiver, 3)
		for i := range list {
			list[i] = receiver(t, Config{Marks: guardOver(t, store), Valid: guardOver(t, store, everyone(2))}, handled.handle)
		}
		require.Equal(t, 200, deliver(list[0], "msg_1").Code)
		for _, later := range []time.Duration{0, time.Minute, time.Hour} { // the busy mark is there, and gone
			time.Sleep(later)
			before := store.made()
			for i := range 1500 {
				require.Equal(t, 200, deliverFrom(list[i%3], "msg_1", fmt.Sprintf("198.51.100.%d", i%256)).Code)
			}
			require.LessOrEqual(t, store.made()-before, 2*len(list), "a storm costs each instance two calls")
		}
		require.EqualValues(t, 1, handled.n.Load())
		time.Sleep(time.Hour)
		require.Equal(t, 200, deliver(list[1], "msg_2").Code)
		require.Equal(t, 200, deliver(list[1], "msg_2b").Code, "the sender has the whole of his quota")
		require.Equal(t, 429, deliver(list[1], "msg_3").Code)
	})
}

// A replay may leave out one of two signatures, move the rest to the headers' other names
// and change whatever is not signed: it is the same delivery.
func TestReplayInOtherClothes(t *testing.T) {
	handled := &counter{}
	rc := receiver(t, Config{Marks: onMemory(t), Scheme: Standard(testSecret, otherSecret)}, handled.handle)
	now := time.Now()
	first, second := signed(testSecret, "msg_1", "{}", now), signed(otherSecret, "msg_1", "{}", now)
	both := first.Clone()
	both["Webhook-Signature"][0] += " " + second.Get("webhook-signature")
	svix := http.Header{}
	for name, lines := range second {
		svix[strings.Replace(name, "Webhook", "Svix", 1)] = lines
	}
	svix.Set("User-Agent", "another")
	svix.Set("X-Attempt", "2")
	for _, h := range []http.Header{both, first, second, svix, signed(otherSecret, "msg_1", "{}", now.Add(time.Minute))} {
		r := request(h, "{}", sender)
		r.URL.Path, r.URL.RawQuery, r.Host = "/other/", "x=1", "another.example"
		w := httptest.NewRecorder()
		rc.ServeHTTP(w, r)
		require.Equal(t, 200, w.Code)
	}
	require.EqualValues(t, 1, handled.n.Load())
}

// A storm on a delivery that is being handled is not handled, and is not charged either.
func TestReplayStormWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore(t)
		handled := &counter{}
		handle := func(ctx context.Context, d Delivery) error {
			time.Sleep(20 * time.Second)
			return handled.handle(ctx, d)
		}
		rc := receiver(t, Config{Marks: guardOver(t, store), Valid: guardOver(t, store, everyone(2))}, handle)
		first := make(chan int)
		go func() { first <- deliver(rc, "msg_1").Code }()
		synctest.Wait()
		for i := range 1000 {
			require.Equal(t, 409, deliverFrom(rc, "msg_1", fmt.Sprintf("198.51.100.%d", i%256)).Code)
		}
		require.Equal(t, 200, <-first)
		require.Equal(t, 200, deliver(rc, "msg_2").Code)
		require.EqualValues(t, 2, handled.n.Load())
	})
}
