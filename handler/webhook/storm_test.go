package webhook

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Many instances, many deliveries at once, handlers that fail and panic, a store that
// comes and goes, senders that go on until they hear 200: each event is handled at least
// once with success, and exactly once where no answer of the store was lost.
func TestStorm(t *testing.T) {
	store := newSharedStore(t)
	var mu sync.Mutex
	running, succeeded, tries := map[string]int{}, map[string]int{}, map[string]int{}
	list := instances(t, 4, store, func(_ context.Context, d Delivery) error {
		mu.Lock()
		running[d.ID]++
		tries[d.ID]++
		try, together := tries[d.ID], running[d.ID]
		mu.Unlock()
		defer func() {
			mu.Lock()
			running[d.ID]--
			mu.Unlock()
		}()
		if together > 1 {
			t.Errorf("%s is handled twice at once", d.ID)
		}
		switch {
		case try == 1 && len(d.ID)%2 == 0:
			return errSignature
		case try == 1:
			panic(http.ErrAbortHandler)
		}
		mu.Lock()
		succeeded[d.ID]++
		mu.Unlock()
		return nil
	})
	var wg sync.WaitGroup
	for i := range 64 {
		id := fmt.Sprint("msg_", i%16)
		wg.Go(func() {
			for n := 0; ; n++ {
				code := func() int {
					defer func() { _ = recover() }()
					return deliver(list[(i+n)%len(list)], id).Code
				}()
				if code == 200 {
					return
				}
				if code != 0 && code != 409 && code != 500 {
					t.Errorf("status %d", code)
					return
				}
				forged(list[n%len(list)], sender, n)
			}
		})
	}
	wg.Wait()
	require.Len(t, succeeded, 16)
	for id, n := range succeeded {
		require.Equal(t, 1, n, id)
	}
}
