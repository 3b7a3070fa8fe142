package webhook

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// instances are receivers over one store, each with a guard of its own.
func instances(t testing.TB, n int, store stores.Store, handle func(context.Context, Delivery) error) []*Receiver {
	t.Helper()
	list := make([]*Receiver, n)
	for i := range list {
		list[i] = receiver(t, Config{Marks: guardOver(t, store)}, handle)
	}
	return list
}

// 100 attempts at once over several instances: one is handled. The others hear 409 while
// it is, and 200 when it was.
func TestParallelDeliveries(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) stores.Store{
		"shared": func(t *testing.T) stores.Store { return newSharedStore(t) },
		"memory": func(t *testing.T) stores.Store {
			m, err := memory.New(memory.Config{})
			require.NoError(t, err)
			return m
		},
	} {
		t.Run(name, func(t *testing.T) {
			for round := range 20 {
				handled := &counter{}
				list := instances(t, 4, open(t), func(ctx context.Context, d Delivery) error {
					for range round {
						runtime.Gosched()
					}
					return handled.handle(ctx, d)
				})
				answers := make([]*httptest.ResponseRecorder, 100)
				var wg sync.WaitGroup
				for i := range answers {
					wg.Go(func() { answers[i] = deliverFrom(list[i%len(list)], "msg_1", fmt.Sprintf("198.51.100.%d", i)) })
				}
				wg.Wait()
				require.EqualValues(t, 1, handled.n.Load())
				for _, w := range answers {
					if w.Code != 200 {
						require.LessOrEqual(t, retryAfter(t, w), 35)
						problem(t, w, 409)
					}
				}
				for _, rc := range list {
					require.Equal(t, 200, deliver(rc, "msg_1").Code)
				}
				require.EqualValues(t, 1, handled.n.Load())
			}
		})
	}
}

func TestBusyThenDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handled := &counter{}
		list := instances(t, 2, newSharedStore(t), func(ctx context.Context, d Delivery) error {
			time.Sleep(20 * time.Second)
			return handled.handle(ctx, d)
		})
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- deliver(list[0], "msg_1") }()
		synctest.Wait()
		time.Sleep(2 * time.Second)
		for _, rc := range list {
			w := deliver(rc, "msg_1")
			problem(t, w, 409)
			require.Equal(t, 33, retryAfter(t, w))
		}
		require.Equal(t, 200, (<-first).Code)
		for _, rc := range list {
			require.Equal(t, 200, deliver(rc, "msg_1").Code, "done, while the busy mark is still there")
		}
		// And for as long as Replay, whatever the instance itself has forgotten.
		for range 10 {
			time.Sleep(23 * time.Hour / 10)
			for _, rc := range list {
				require.Equal(t, 200, deliver(rc, "msg_1").Code)
			}
		}
		require.EqualValues(t, 1, handled.n.Load())
		time.Sleep(2 * time.Hour)
		require.Equal(t, 200, deliver(list[1], "msg_1").Code)
		require.EqualValues(t, 2, handled.n.Load(), "after Replay it is another event")
	})
}

// A handler that fails takes its mark back at once, on whatever instance.
func TestFailedHandler(t *testing.T) {
	handled := &counter{}
	handled.fail.Store(true)
	list := instances(t, 3, newSharedStore(t), handled.handle)
	for i := range 9 {
		w := deliver(list[i%3], "msg_1")
		problem(t, w, 500)
		require.NotContains(t, w.Body.String(), errSignature.Error())
	}
	handled.fail.Store(false)
	for _, rc := range list {
		require.Equal(t, 200, deliver(rc, "msg_1").Code)
	}
	require.EqualValues(t, 10, handled.n.Load())
}

// eager is a sender's end who acts on a status as soon as it is written.
type eager struct {
	http.ResponseWriter
	act func(status int)
}

func (e eager) WriteHeader(status int) {
	e.act(status)
	e.ResponseWriter.WriteHeader(status)
}

// The marks are settled before the sender hears anything.
func TestSettledBeforeTheAnswer(t *testing.T) {
	handled := &counter{}
	list := instances(t, 2, newSharedStore(t), handled.handle)
	for _, test := range []struct {
		id            string
		fails         bool
		status, again int
		runs          int64
	}{{"msg_1", false, 200, 200, 1}, {"msg_2", true, 500, 500, 3}} {
		handled.fail.Store(test.fails)
		again := 0
		w := eager{httptest.NewRecorder(), func(status int) {
			require.Equal(t, test.status, status)
			again = deliver(list[1], test.id).Code
		}}
		list[0].ServeHTTP(w, request(signed(testSecret, test.id, "{}", time.Now()), "{}", sender))
		require.Equal(t, test.again, again)
		require.Equal(t, test.runs, handled.n.Load())
	}
}

func TestPanickingHandler(t *testing.T) {
	panics := true
	handled := &counter{}
	list := instances(t, 2, newSharedStore(t), func(ctx context.Context, d Delivery) error {
		if panics {
			panic("as the handler said it")
		}
		return handled.handle(ctx, d)
	})
	for _, rc := range list {
		require.PanicsWithValue(t, "as the handler said it", func() { deliver(rc, "msg_1") })
	}
	// The end of a goroutine, which a test's FailNow is, is no panic and no success.
	for _, end := range []func(){func() { panic(http.ErrAbortHandler) }, runtime.Goexit} {
		ended := make(chan struct{})
		rc := receiver(t, Config{Marks: list[0].marks.guard}, func(context.Context, Delivery) error { end(); return nil })
		go func() {
			defer close(ended)
			defer func() { _ = recover() }()
			deliver(rc, "msg_1")
		}()
		<-ended
	}
	panics = false
	require.Equal(t, 200, deliver(list[1], "msg_1").Code)
	require.EqualValues(t, 1, handled.n.Load())
}
