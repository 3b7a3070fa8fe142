package webhook

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
)

// An instance that dies leaves a busy mark, which ends: no event is lost, and none is
// answered with a 2xx before it was handled.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore(t)
		handled := &counter{}
		list := instances(t, 2, store, handled.handle)
		// All that the dead one did.
		dead := list[0].marks
		what, _, held := dead.claim(t.Context(), dead.name("msg_1"))
		require.Equal(t, claimed, what)
		require.True(t, held)
		waited := 0
		for {
			w := deliver(list[1], "msg_1")
			if w.Code == 200 {
				break
			}
			problem(t, w, 409)
			wait := retryAfter(t, w)
			waited += wait
			time.Sleep(time.Duration(wait) * time.Second)
		}
		require.Equal(t, 35, waited)
		require.EqualValues(t, 1, handled.n.Load())
	})
}

// A handler that overstays his time no longer owns the busy mark: what he takes back then
// would be another's.
func TestOverstayedHandlerTakesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore(t)
		slow := instances(t, 1, store, func(ctx context.Context, _ Delivery) error {
			<-ctx.Done()
			require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
			time.Sleep(6 * time.Second)
			return errors.New("too late")
		})[0]
		second := &counter{}
		other := instances(t, 2, store, func(ctx context.Context, d Delivery) error {
			time.Sleep(10 * time.Second)
			return second.handle(ctx, d)
		})
		began := time.Now()
		go deliver(slow, "msg_1")
		time.Sleep(busyTime)
		go deliver(other[0], "msg_1")
		time.Sleep(2 * time.Second) // the slow one has returned
		require.Equal(t, 37*time.Second, time.Since(began))
		require.Equal(t, 409, deliver(other[1], "msg_1").Code)
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, second.n.Load())
	})
}

// A handler that overstays his time and succeeds has succeeded.
func TestOverstayedSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore(t)
		rc := instances(t, 1, store, func(context.Context, Delivery) error {
			time.Sleep(time.Minute)
			return nil
		})[0]
		require.Equal(t, 200, deliver(rc, "msg_1").Code)
		require.Equal(t, 200, deliver(instances(t, 1, store, mustNotRun)[0], "msg_1").Code)
	})
}

// What Valid refuses is not handled, and can come again as told.
func TestLimitedIsNotBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore(t)
		handled := &counter{}
		valid := handler.Policy{Name: "valid", Limit: stores.FixedWindow(1, 10*time.Second), Key: handler.ByIP()}
		rc := receiver(t, Config{Marks: guardOver(t, store), Valid: guardOver(t, store, valid)}, handled.handle)
		require.Equal(t, 200, deliver(rc, "msg_1").Code)
		w := deliver(rc, "msg_2")
		require.Equal(t, 429, w.Code)
		time.Sleep(time.Duration(retryAfter(t, w)) * time.Second)
		require.Equal(t, 200, deliver(rc, "msg_2").Code)
		require.EqualValues(t, 2, handled.n.Load())
	})
}

// Marks of one id are apart for two senders, also when they share the guard; and ids are
// whatever bytes a sender likes.
func TestIDs(t *testing.T) {
	store := newSharedStore(t)
	for i, id := range []string{"msg_1", "MSG_1", " ", "\x00", "\u00e9", "\xff\xfe", "webhook-busy", strings.Repeat("x", 4000), "a\x00b", `"'{}`, "a:b/c"} {
		handled := &counter{}
		guard := guardOver(t, store)
		for _, secret := range []string{testSecret, otherSecret} {
			rc := receiver(t, Config{Marks: guard, Scheme: Standard(secret)}, handled.handle)
			for range 2 {
				w := httptest.NewRecorder()
				rc.ServeHTTP(w, request(signed(secret, id, "{}", time.Now()), "{}", sender))
				require.Equal(t, 200, w.Code, "%d: %q", i, id)
			}
		}
		require.EqualValues(t, 2, handled.n.Load(), "%d: %q", i, id)
	}
}

// On Lambda the process ends at the deadline: the handler hears of it before, so that the
// done mark, or the busy mark's end, can still be written.
func TestDeadlineOfTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for limit, want := range map[time.Duration]time.Duration{
			time.Second: 750 * time.Millisecond, 5 * time.Second: 4 * time.Second, time.Minute: handleTime, 0: handleTime,
		} {
			ctx, cancel := context.Background(), context.CancelFunc(func() {})
			if limit > 0 {
				ctx, cancel = context.WithTimeout(ctx, limit)
			}
			store := newSharedStore(t)
			rc := instances(t, 1, store, func(ctx context.Context, _ Delivery) error {
				<-ctx.Done()
				return nil
			})[0]
			began := time.Now()
			w := httptest.NewRecorder()
			rc.ServeHTTP(w, request(signed(testSecret, "msg_1", "{}", time.Now()), "{}", sender).WithContext(ctx))
			require.Equal(t, want, time.Since(began))
			require.Equal(t, 200, w.Code)
			require.Equal(t, 200, deliver(instances(t, 1, store, mustNotRun)[0], "msg_1").Code, "the done mark was written")
			cancel()
		}
	})
}

func mustNotRun(context.Context, Delivery) error { return errors.New("must not be called") }

// A sender that hangs up ends nothing, and his next attempt is told that it is done.
func TestHangUpWhileHandling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handled := &counter{}
		list := instances(t, 2, newSharedStore(t), func(ctx context.Context, d Delivery) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(4 * time.Second):
			}
			return handled.handle(ctx, d)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		returned := make(chan struct{})
		go func() {
			list[0].ServeHTTP(httptest.NewRecorder(), request(signed(testSecret, "msg_1", "{}", time.Now()), "{}", sender).WithContext(ctx))
			close(returned)
		}()
		synctest.Wait()
		cancel()
		time.Sleep(3 * time.Second)
		require.Equal(t, 409, deliver(list[1], "msg_1").Code)
		<-returned
		require.Equal(t, 200, deliver(list[1], "msg_1").Code)
		require.EqualValues(t, 1, handled.n.Load())

		// One who hung up before anything was begun leaves no mark.
		w := httptest.NewRecorder()
		list[0].ServeHTTP(w, request(signed(testSecret, "msg_2", "{}", time.Now()), "{}", sender).WithContext(ctx))
		problem(t, w, 503)
		require.Equal(t, 200, deliver(list[1], "msg_2").Code)
	})
}
