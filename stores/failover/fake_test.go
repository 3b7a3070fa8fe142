package failover

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// fake is a shared store that counts like one and fails as told.
type fake struct {
	mem *memory.Store

	mu      sync.Mutex
	fail    func(n int, ctx context.Context, hit stores.Hit) error // before counting; n is the call's number
	lose    error                                                  // after counting: the answer is lost
	delay   time.Duration
	late    time.Duration // between the count and the answer
	unsure  bool
	calls   int
	applied int
	paid    int // owed that TakeOwing was told of
	atOnce  int
	most    int
	ctxs    []context.Context
}

func newFake(t testing.TB) *fake {
	mem, err := memory.New(memory.Config{})
	require.NoError(t, err)
	return &fake{mem: mem}
}

func (f *fake) set(change func(f *fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fake) failWith(err error) {
	f.set(func(f *fake) {
		f.fail = nil
		if err != nil {
			f.fail = func(int, context.Context, stores.Hit) error { return err }
		}
	})
}

func (f *fake) count() (calls, applied int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls, f.applied
}

func (f *fake) begin(ctx context.Context, hit stores.Hit) error {
	f.mu.Lock()
	f.calls++
	f.atOnce++
	f.most = max(f.most, f.atOnce)
	f.ctxs = append(f.ctxs, ctx)
	n, fail, delay := f.calls, f.fail, f.delay
	f.mu.Unlock()
	defer f.set(func(f *fake) { f.atOnce-- })
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return &fault.Error{Kind: stores.ErrUnavailable, Text: "no answer in time", Cause: ctx.Err()}
		}
	}
	if fail != nil {
		return fail(n, ctx, hit)
	}
	return nil
}

func (f *fake) TakeCertain(ctx context.Context, hit stores.Hit) (stores.Decision, bool, error) {
	if err := f.begin(ctx, hit); err != nil {
		return stores.Decision{}, false, err
	}
	d, err := f.mem.Take(ctx, hit)
	if err != nil {
		return d, false, err
	}
	f.mu.Lock()
	late := f.late
	f.mu.Unlock()
	if late > 0 {
		time.Sleep(late)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied++
	return d, !f.unsure, f.lose
}

func (f *fake) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	d, _, err := f.TakeCertain(ctx, hit)
	return d, err
}

func (f *fake) Peek(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	if err := f.begin(ctx, hit); err != nil {
		return stores.Decision{}, err
	}
	return f.mem.Peek(ctx, hit)
}

func (f *fake) Reset(ctx context.Context, hit stores.Hit) error {
	if err := f.begin(ctx, hit); err != nil {
		return err
	}
	return f.mem.Reset(ctx, hit)
}

func (f *fake) Refund(ctx context.Context, hit stores.Hit) error {
	if err := f.begin(ctx, hit); err != nil {
		return err
	}
	return f.mem.Refund(ctx, hit)
}

func (f *fake) TakeOwing(ctx context.Context, hit stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	if err := f.begin(ctx, hit); err != nil {
		return stores.Decision{}, err
	}
	d, err := f.mem.TakeOwing(ctx, hit, owed, until)
	if err != nil {
		return d, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied++
	f.paid += owed
	return d, f.lose
}

var (
	errDown   = &fault.Error{Kind: stores.ErrUnavailable, Text: "connection refused", Definite: true}
	errQuota  = &fault.Error{Kind: stores.ErrThrottled, Text: "quota used up", Definite: true, Lasting: true}
	errBusyDB = &fault.Error{Kind: stores.ErrThrottled, Text: "too many requests", Definite: true}
	errToken  = &fault.Error{Kind: stores.ErrMisconfigured, Text: "wrong token", Definite: true, Lasting: true}
	errOneKey = &fault.Error{Kind: stores.ErrHotKey, Text: "hot key", Definite: true, KeyOnly: true}
	errOdd    = errors.New("an error of no kind")
)

// rig is a Store over a fake, with what it logged and announced.
type rig struct {
	*Store
	fake    *fake
	log     *bytes.Buffer
	changes []Change
	mu      sync.Mutex
}

func newRig(t testing.TB, cfg Config) *rig {
	r := &rig{fake: newFake(t), log: new(bytes.Buffer)}
	cfg.Logger = slog.New(slog.NewTextHandler(r.log, nil))
	onChange := cfg.OnChange
	cfg.OnChange = func(c Change) {
		r.mu.Lock()
		r.changes = append(r.changes, c)
		r.mu.Unlock()
		if onChange != nil {
			onChange(c)
		}
	}
	var err error
	r.Store, err = New(r.fake, cfg)
	require.NoError(t, err)
	return r
}

func (r *rig) states() []State {
	r.mu.Lock()
	defer r.mu.Unlock()
	var to []State
	for _, c := range r.changes {
		to = append(to, c.To)
	}
	return to
}

func (r *rig) hit(t testing.TB, key string, limit stores.Limit) stores.Decision {
	t.Helper()
	d, err := r.Take(t.Context(), stores.Hit{Key: key, Limit: limit})
	require.NoError(t, err)
	return d
}

// trip makes the breaker open by five failures on keys of their own.
func (r *rig) trip(t testing.TB, err error) {
	t.Helper()
	r.fake.failWith(err)
	for i := range tripInARow {
		r.hit(t, "trip"+string(rune('a'+i)), stores.FixedWindow(1, time.Minute))
	}
	require.Equal(t, Open, r.Stats().State)
}

var five = stores.FixedWindow(5, time.Minute)
