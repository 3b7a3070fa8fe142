package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// An outage handles nothing: neither what comes during it, nor twice what came before.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore(t)
		handled := &counter{}
		list := instances(t, 2, store, handled.handle)
		require.Equal(t, 200, deliver(list[0], "msg_1").Code)
		store.set(down, nil)
		for i := range 50 {
			w := deliver(list[i%2], fmt.Sprint("msg_new", i))
			problem(t, w, 503)
			retryAfter(t, w)
			require.Equal(t, 200, deliver(list[0], "msg_1").Code, "the instance that handled it knows")
			require.Equal(t, 503, deliver(list[1], "msg_1").Code, "the other can't")
		}
		require.EqualValues(t, 1, handled.n.Load())
		store.set(nil, nil)
		time.Sleep(10 * time.Second)
		for i := range 50 {
			require.Equal(t, 200, deliver(list[i%2], fmt.Sprint("msg_new", i)).Code)
			require.Equal(t, 200, deliver(list[i%2], fmt.Sprint("msg_new", i)).Code)
			require.Equal(t, 200, deliver(list[1], "msg_1").Code)
		}
		require.EqualValues(t, 51, handled.n.Load())
	})
}

// One call fails, whichever it is, and twice at most: no event is handled twice, each is
// handled in the end, and none is said to be that was not.
func TestEachCallFails(t *testing.T) {
	failures := []struct {
		name, call string
		n          int
	}{{"busy mark", "take", 1}, {"look for done", "peek", 1}, {"done mark", "take", 2}}
	for _, f := range failures {
		for how, fault := range map[string]func(string, string) error{"definite": down, "ambiguous": lost} {
			for _, applied := range []bool{false, true} {
				t.Run(fmt.Sprint(f.name, " ", how, " applied ", applied), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						store := newSharedStore(t)
						handled := &counter{}
						list := instances(t, 2, store, handled.handle)
						fail := only(f.call, f.n, fault)
						if applied {
							store.set(nil, fail)
						} else {
							store.set(fail, nil)
						}
						w := deliver(list[0], "msg_1")
						if f.call == "take" && f.n == 1 && applied {
							// The first attempt took the mark unheard, so nobody knows whose it is.
							problem(t, w, 409)
							require.Zero(t, handled.n.Load())
							time.Sleep(time.Duration(retryAfter(t, w)) * time.Second)
							w = deliver(list[1], "msg_1")
						}
						require.Equal(t, 200, w.Code)
						for range 3 {
							for _, rc := range list {
								require.Equal(t, 200, deliver(rc, "msg_1").Code)
							}
							time.Sleep(time.Hour)
						}
						require.EqualValues(t, 1, handled.n.Load())
					})
				})
			}
		}
	}
}

// Nobody can tell whether a delivery is done: it is not handled, and not left busy.
func TestDoneCannotBeLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore(t)
		handled := &counter{}
		list := instances(t, 2, store, handled.handle)
		store.set(func(call, _ string) error {
			if call == "peek" {
				return lost("", "")
			}
			return nil
		}, nil)
		problem(t, deliver(list[0], "msg_1"), 503)
		require.Zero(t, handled.n.Load())
		store.set(nil, nil)
		require.Equal(t, 200, deliver(list[1], "msg_1").Code)
		require.EqualValues(t, 1, handled.n.Load())
	})
}

// The store fails when a delivery was handled: that is success all the same, and who
// handled it goes on knowing it. The log says so, and not for each.
func TestDoneMarkIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &logged{}
		was := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
		defer slog.SetDefault(was)
		store := newSharedStore(t)
		handled := &counter{}
		list := instances(t, 2, store, func(ctx context.Context, d Delivery) error {
			store.set(lost, nil)
			return handled.handle(ctx, d)
		})
		for i := range 12 {
			store.set(nil, nil)
			time.Sleep(10 * time.Second) // until the breaker has found the store again
			require.Equal(t, 200, deliver(list[0], fmt.Sprint("msg_", i)).Code)
			require.Equal(t, 200, deliver(list[0], fmt.Sprint("msg_", i)).Code)
		}
		store.set(nil, nil)
		require.Equal(t, 409, deliver(list[1], "msg_11").Code, "the busy mark is still there")
		require.EqualValues(t, 12, handled.n.Load())
		require.Equal(t, 2, strings.Count(log.String(), "could not be marked"), log)
		require.NotContains(t, log.String(), "msg_")
	})
}

// The busy mark can't be taken back: it ends by itself.
func TestReleaseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore(t)
		handled := &counter{}
		handled.fail.Store(true)
		list := instances(t, 2, store, handled.handle)
		store.set(only("reset", 1, down), nil)
		require.Equal(t, 500, deliver(list[0], "msg_1").Code)
		handled.fail.Store(false)
		w := deliver(list[1], "msg_1")
		problem(t, w, 409)
		time.Sleep(time.Duration(retryAfter(t, w)) * time.Second)
		require.Equal(t, 200, deliver(list[1], "msg_1").Code)
	})
}

// A store that hangs costs each delivery its time and no more, and nobody a handler's
// run that the marks did not allow.
func TestStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newSharedStore(t)
		handled := &counter{}
		rc := instances(t, 1, store, handled.handle)[0]
		store.set(func(string, string) error {
			time.Sleep(3 * time.Second)
			return lost("", "")
		}, nil)
		for i := range 20 {
			began := time.Now()
			problem(t, deliver(rc, fmt.Sprint("msg_", i)), 503)
			require.LessOrEqual(t, time.Since(began), 2*3*time.Second)
		}
		require.Zero(t, handled.n.Load())
	})
}
