package dynamo

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
)

// payment is a hit that owes.
type payment struct {
	hit   stores.Hit
	owed  int
	until time.Duration
}

// payAll makes all payments at once, and returns what they were told.
func payAll(t testing.TB, instances []*Store, payments []payment) []stores.Decision {
	t.Helper()
	decisions, errs := make([]stores.Decision, len(payments)), make([]error, len(payments))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a slow machine is no fault
	defer cancel()
	gate := make(chan struct{})
	var all sync.WaitGroup
	for i, p := range payments {
		all.Go(func() {
			<-gate
			decisions[i], errs[i] = instances[i%len(instances)].TakeOwing(ctx, p.hit, p.owed, p.until)
		})
	}
	close(gate)
	all.Wait()
	for i := range decisions {
		require.NoError(t, errs[i])
	}
	return decisions
}

// A hundred payers at once by ten instances, with room for all: every payment is
// taken once, and every hit too, whether the key is new, warm or over.
func TestParallelPaymentsAreTakenOnce(t *testing.T) {
	server := dynamotest.New(t)
	ten := instancesOf(t, server.Client(), 10)
	for round := range 24 {
		h := hit(fmt.Sprint("k", round), 1000, time.Hour)
		until := 20 * time.Minute
		end := int64(0)
		switch round % 3 {
		case 1:
			server.Put(t, h.Key, item(1000, time.Now().Add(-time.Second).UnixMilli()))
		case 2:
			end = time.Now().Add(time.Minute).UnixMilli()
			server.Put(t, h.Key, item(0, end))
		}
		var payments []payment
		want := 0
		for i := range 100 {
			p := payment{costing(h, 1+i%2), i % 6, until}
			if p.owed == 0 {
				p.until = 0 // a plain hit among them, which opens a window of its own
			}
			want += p.owed + p.hit.Cost
			payments = append(payments, p)
		}
		server.ResetCalls()
		for i, d := range payAll(t, ten, payments) {
			require.True(t, d.Allowed, "%d", i)
		}
		w, _ := stored(t, server, h.Key)
		require.Equal(t, int64(want), w.n)
		if end != 0 {
			require.Equal(t, end, w.end, "no payment moves an end")
		}
		require.LessOrEqual(t, server.Calls(""), 200, "there was room: two calls for each at most")
	}
}

// The same where there is room for a few only: the window is filled to the brim and
// never above, and whoever was let in had room behind its payment.
func TestParallelPaymentsSaturate(t *testing.T) {
	server := dynamotest.New(t)
	testParallelPaymentsSaturate(t, server.Client(), 24)
	require.LessOrEqual(t, server.Calls(""), 24*100*maxOwingCalls)
	t.Logf("%.2f calls for each", float64(server.Calls(""))/(24*100))
}

func TestParallelPaymentsSaturateOnDynalite(t *testing.T) {
	testParallelPaymentsSaturate(t, dynamotest.Dynalite(t), 8)
}

func testParallelPaymentsSaturate(t *testing.T, client Client, rounds int) {
	ten := instancesOf(t, client, 10)
	for round := range rounds {
		const quota = 40
		h := hit(fmt.Sprint("k", round), quota, time.Hour)
		if round%2 == 1 {
			require.True(t, take(t, ten[0], h).Allowed)
		}
		var payments []payment
		for i := range 100 {
			payments = append(payments, payment{costing(h, 1+i%3), 1 + (i*7+round)%9, 20 * time.Minute})
		}
		level, passed := 0, 0
		for i, d := range payAll(t, ten, payments) {
			if d.Allowed {
				passed++
				level += payments[i].owed + payments[i].hit.Cost
				continue
			}
			require.Positive(t, d.RetryAfter)
			require.Less(t, d.Remaining, payments[i].hit.Cost)
		}
		require.LessOrEqual(t, level, quota)
		require.Positive(t, passed, "the first one finds the window empty, or nearly so")
		peeked, err := ten[0].Peek(t.Context(), h)
		require.NoError(t, err)
		require.Zero(t, peeked.Remaining)
		h.Limit.Quota++
		require.True(t, take(t, ten[0], h).Allowed, "not above the quota")
		require.False(t, take(t, ten[0], h).Allowed, "and not below")
	}
}

// Payers, hits, refunds and a reset at the same time: no count is ever out of bounds,
// and no call is made beyond the bound.
func TestPaymentsAmongEverything(t *testing.T) {
	server := dynamotest.New(t)
	ten := instancesOf(t, server.Client(), 10)
	for round := range 20 {
		const quota = 30
		h := hit(fmt.Sprint("k", round), quota, time.Hour)
		server.ResetCalls()
		var all sync.WaitGroup
		for i := range 100 {
			s := ten[i%10]
			all.Go(func() {
				ctx := context.WithoutCancel(t.Context())
				var d stores.Decision
				var err error
				switch {
				case i%4 == 0:
					err = s.Refund(ctx, h)
				case i == 50:
					err = s.Reset(ctx, h)
				case i%4 == 1:
					d, err = s.Take(ctx, h)
				default:
					d, err = s.TakeOwing(ctx, h, 1+i%5, time.Minute)
				}
				if err != nil && !asFault(t, err).Definite || d.Remaining < 0 || d.Remaining > quota {
					t.Errorf("%v, %v", d, err)
				}
			})
		}
		all.Wait()
		w, _ := stored(t, server, h.Key)
		require.LessOrEqual(t, w.n, int64(quota))
		require.GreaterOrEqual(t, w.n, int64(0))
		require.LessOrEqual(t, server.Calls("UpdateItem"), 100*maxOwingCalls)
	}
}

// meddler changes the item before each of a Store's updates.
func meddler(t *testing.T, server *dynamotest.Server, key string, before ...func(now time.Time) (n int, end time.Time)) dynamotest.Manner {
	call := 0
	return func(_ context.Context, apply func() dynamotest.Reply) (dynamotest.Reply, error) {
		if change := before[call%len(before)]; change != nil {
			n, end := change(time.Now())
			server.Put(t, key, item(n, end.UnixMilli()))
		}
		call++
		return apply(), nil
	}
}

func live(n int) func(time.Time) (int, time.Time) {
	return func(now time.Time) (int, time.Time) { return n, now.Add(time.Minute) }
}

func over(n int) func(time.Time) (int, time.Time) {
	return func(now time.Time) (int, time.Time) { return n, now }
}

// The longest way that other payers can send one: each call meets what a faster one left.
func TestPaymentsOvertaken(t *testing.T) {
	for _, tt := range []struct {
		name    string
		before  []func(time.Time) (int, time.Time)
		calls   int
		allowed bool
		n       int64
	}{
		{"twice", []func(time.Time) (int, time.Time){over(9), live(1), nil}, 3, true, 6},
		{"before it counts", []func(time.Time) (int, time.Time){over(9), live(1), live(6), nil}, 4, false, 9},
		{"before it pays", []func(time.Time) (int, time.Time){over(9), live(1), live(6), live(8), nil}, 5, false, 10},
		{"before it fills", []func(time.Time) (int, time.Time){over(9), live(1), live(6), live(8), live(10)}, 5, false, 10},
		{"by a refund before it pays", []func(time.Time) (int, time.Time){live(6), live(2), nil}, 3, true, 7},
		{"by a refund before it fills", []func(time.Time) (int, time.Time){live(8), live(2), nil}, 3, true, 7},
		{"by a smaller refund before it fills", []func(time.Time) (int, time.Time){live(8), live(6), nil}, 3, false, 9},
		{"by more than the quota before it counts", []func(time.Time) (int, time.Time){live(2), live(15)}, 2, false, 15},
		{"by more than the quota before it pays", []func(time.Time) (int, time.Time){live(6), live(15)}, 2, false, 15},
		{"by more than the quota before it fills", []func(time.Time) (int, time.Time){live(8), live(15)}, 2, false, 15},
		{"by the window's end before it counts", []func(time.Time) (int, time.Time){live(2), over(2), nil}, 3, true, 5},
		{"by the window's end before it pays", []func(time.Time) (int, time.Time){live(6), over(6), nil}, 3, true, 5},
		{"by the window's end before it fills", []func(time.Time) (int, time.Time){live(8), over(8), nil}, 3, true, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := dynamotest.New(t)
				s, h := newStore(t, server.Client()), costing(hit(marker, 10, time.Minute), 2)
				if tt.name == "twice" || strings.HasPrefix(tt.name, "before") {
					s.hints.learn(h.Key, time.Now().Add(time.Minute).UnixMilli(), hint{n: 1})
				}
				server.SetFault(dynamotest.Fault{Do: meddler(t, server, h.Key, tt.before...)})
				d := takeOwing(t, s, h, 3, time.Second)
				require.Equal(t, tt.allowed, d.Allowed)
				require.Equal(t, tt.calls, server.Calls(""))
				w, _ := stored(t, server, h.Key)
				require.Equal(t, tt.n, w.n)
			})
		})
	}
}

// Whoever changes the key before each call keeps a payment out, but not for ever, and
// not without a word: nothing was paid, so it is still owed.
func TestPaymentsKeptOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := dynamotest.New(t)
		s, h := newStore(t, server.Client()), hit(marker, 10, time.Minute)
		server.SetFault(dynamotest.Fault{Do: meddler(t, server, h.Key, live(0), over(9))})
		d, err := s.TakeOwing(t.Context(), h, 3, time.Second)
		require.Zero(t, d)
		f := asFault(t, err)
		require.ErrorIs(t, err, stores.ErrUnavailable)
		require.Equal(t, []bool{true, true, false}, []bool{f.Definite, f.KeyOnly, f.Lasting})
		require.ErrorContains(t, err, "6 times")
		require.Equal(t, maxOwingCalls, server.Calls(""))
		w, _ := stored(t, server, h.Key)
		require.Equal(t, int64(9), w.n, "as the meddler left it")

		server.ClearFaults()
		require.Equal(t, 6, takeOwing(t, s, h, 3, time.Second).Remaining)
	})
}
