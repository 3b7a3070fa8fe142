package dynamo

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
)

// payingBranch is a way to pay, by the state that leads there: quota 10, 3 owed, and
// a hit of cost 2.
type payingBranch struct {
	name     string
	n        int
	over     bool
	want     int64
	decision stores.Decision
}

var payingBranches = []payingBranch{
	{"new key", none, false, 5, stores.Decision{Allowed: true, Remaining: 5, ResetAfter: 20 * time.Second}},
	{"over", 9, true, 5, stores.Decision{Allowed: true, Remaining: 5, ResetAfter: 20 * time.Second}},
	{"both", 0, false, 5, stores.Decision{Allowed: true, Remaining: 5, ResetAfter: time.Minute}},
	{"payment alone", 6, false, 9, stores.Decision{Remaining: 1, RetryAfter: time.Minute, ResetAfter: time.Minute}},
	{"a part of it", 8, false, 10, stores.Decision{RetryAfter: time.Minute, ResetAfter: time.Minute}},
}

func (b payingBranch) live() bool { return b.n != none && !b.over }

func (b payingBranch) put(t *testing.T, server *dynamotest.Server, key string) {
	t.Helper()
	end := time.Now()
	if !b.over {
		end = end.Add(time.Minute)
	}
	if b.n != none {
		server.Put(t, key, item(b.n, end.UnixMilli()))
	}
}

// Every fault in every branch, after a right and after a wrong guess, on the first call
// and on the second: what was carried out was carried out once, and where the error is
// definite nothing was, so that the debt may be paid again.
func TestTakeOwingFaultMatrix(t *testing.T) {
	for _, tt := range faultCases() {
		t.Run(tt.name, func(t *testing.T) {
			for _, b := range payingBranches {
				for i := range 4 {
					warm, skip := i%2 == 1, i/2
					synctest.Test(t, func(t *testing.T) { testPaymentMeetsFault(t, tt, b, warm, skip) })
				}
			}
		})
	}
}

func testPaymentMeetsFault(t *testing.T, tt faultCase, b payingBranch, warm bool, skip int) {
	server := dynamotest.New(t)
	s, h := newStore(t, server.Client()), costing(hit(marker, 10, time.Minute), 2)
	b.put(t, server, h.Key)
	if warm {
		s.hints.learn(h.Key, time.Now().Add(time.Minute).UnixMilli(), hint{n: 1})
	}
	before, _ := stored(t, server, h.Key)
	server.SetFault(dynamotest.Fault{Skip: skip, Do: tt.do})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()

	d, err := s.TakeOwing(ctx, h, 3, 20*time.Second)
	after, _ := stored(t, server, h.Key)
	require.LessOrEqual(t, server.Calls(""), maxOwingCalls)
	if err == nil {
		// It needed one call only, or the lie could have been true.
		require.Equal(t, b.decision.Allowed, d.Allowed, b.name)
		require.Equal(t, b.want, after.n, b.name)
		return
	}
	require.Zero(t, d, b.name)
	f := asFault(t, err)
	require.ErrorIs(t, err, tt.kind, b.name)
	if tt.definite {
		require.True(t, f.Definite, b.name)
	}
	if f.Definite || tt.stored == 0 {
		require.Equal(t, before, after, "nothing was written: %s", b.name)
	}
	if after != before {
		require.Equal(t, b.want, after.n, "once: %s", b.name)
	}
	server.ClearFaults()
	if f.Definite {
		require.Equal(t, b.decision, takeOwing(t, s, h, 3, 20*time.Second), b.name)
		after, _ = stored(t, server, h.Key)
		require.Equal(t, b.want, after.n, "paid once: %s", b.name)
	}
}

// A payment whose answer was lost is not sent again, by whatever client, and is not
// definite: it stands in the table once.
func TestLostPaymentIsPaidOnce(t *testing.T) {
	for name, do := range map[string]dynamotest.Manner{
		"cut": dynamotest.DropAfter(), "silence": dynamotest.HangAfter(), "body cut": dynamotest.CutBody(),
		"body stalls": dynamotest.StallBody(), "500": dynamotest.FailAfter(500, "InternalServerError", ""),
	} {
		for _, b := range payingBranches {
			t.Run(name+", "+b.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := dynamotest.New(t)
					s, h := newStore(t, server.Client()), costing(hit(marker, 10, time.Minute), 2)
					b.put(t, server, h.Key)
					skip := 0
					if b.live() {
						skip = 1
					}
					server.SetFault(dynamotest.Fault{Skip: skip, Do: do})
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
					defer cancel()
					_, err := s.TakeOwing(ctx, h, 3, 20*time.Second)
					require.False(t, asFault(t, err).Definite)
					require.Equal(t, skip+1, server.Calls(""))
					w, _ := stored(t, server, h.Key)
					require.Equal(t, b.want, w.n)
				})
			})
		}
	}
}

// An answer that the condition can't have let pass is no decision, and may have been paid.
func TestLiesAboutPayments(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    int // in the table
		lie  string
		to   string
	}{
		{"opened with less", none, "n", "4"},
		{"opened with more", none, "n", "6"},
		{"opened for longer", none, "e", "9007199254740991"},
		{"counted less than paid", 0, "n", "4"},
		{"counted above the quota", 0, "n", "11"},
		{"counted in a window that is over", 0, "e", "1"},
		{"paid, and there was room for the hit", 6, "n", "8"},
		{"paid above the quota", 6, "n", "11"},
		{"filled by less", 8, "n", "9"},
		{"filled by more", 8, "n", "11"},
		{"filled a window that is over", 8, "e", "1"},
		{"filled, and the count is gone", 8, "n", "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := dynamotest.New(t)
				s, h := newStore(t, server.Client()), costing(hit(marker, 10, time.Minute), 2)
				skip := 0
				if tt.n != none {
					server.Put(t, h.Key, item(tt.n, time.Now().Add(time.Minute).UnixMilli()))
					skip = 1
				}
				server.SetFault(dynamotest.Fault{Skip: skip, Do: dynamotest.Lie(func(a map[string]any) { a[tt.lie] = map[string]any{"N": tt.to} })})
				d, err := s.TakeOwing(t.Context(), h, 3, 20*time.Second)
				require.Zero(t, d)
				require.ErrorIs(t, err, stores.ErrUnavailable)
				require.False(t, asFault(t, err).Definite)
			})
		})
	}
}

// Whoever pays by a clock that is off within bounds holds the offender for as long as was
// owed, give or take what the clocks differ: no longer than that, and not for ever.
func TestPaymentsBySkewedClocks(t *testing.T) {
	for _, skew := range []time.Duration{-1900 * time.Millisecond, -time.Second, 0, time.Second, 1900 * time.Millisecond} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := dynamotest.New(t)
				payer, _ := offsetStore(t, server, skew)
				other := newStore(t, server.Client())
				h := hit("k", 5, time.Minute)
				const until = 10 * time.Second
				d := takeOwing(t, payer, h, 5, until)
				require.Equal(t, stores.Decision{RetryAfter: until, ResetAfter: until}, d)

				// Other payers move nothing, whatever their clocks say.
				ahead, _ := offsetStore(t, server, 1900*time.Millisecond)
				require.False(t, takeOwing(t, ahead, h, 5, time.Minute).Allowed)
				opened := time.Now()
				for !take(t, other, h).Allowed {
					time.Sleep(10 * time.Millisecond)
				}
				require.WithinRange(t, time.Now(), opened.Add(until+skew), opened.Add(until+skew+10*time.Millisecond))
			})
		})
	}
}

// A payment into a window that a clock far ahead left behind: the end is moved first,
// then the payment is made in the same window, and the offender is held for one window.
func TestPaymentIntoAnEndThatNobodyMeant(t *testing.T) {
	for _, n := range []int{0, 3, 4, 5, 9} {
		synctest.Test(t, func(t *testing.T) {
			server := dynamotest.New(t)
			s, h := newStore(t, server.Client()), hit("k", 5, time.Minute)
			server.Put(t, h.Key, item(n, time.Now().Add(48*time.Hour).UnixMilli()))
			require.Equal(t, stores.Decision{RetryAfter: time.Minute, ResetAfter: time.Minute}, takeOwing(t, s, h, 5, time.Second))
			require.LessOrEqual(t, server.Calls(""), 3)
			w, _ := stored(t, server, h.Key)
			require.Equal(t, window{int64(max(5, n)), time.Now().Add(time.Minute).UnixMilli()}, w)
			time.Sleep(time.Minute - time.Millisecond)
			require.False(t, take(t, s, h).Allowed)
			time.Sleep(time.Millisecond)
			require.True(t, take(t, s, h).Allowed)
		})
	}
}
