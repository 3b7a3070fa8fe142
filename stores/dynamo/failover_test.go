package dynamo

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/failover"
)

// outages are how a table that is down answers.
var outages = map[string]func(*rand.Rand) dynamotest.Manner{
	"throttled":      func(*rand.Rand) dynamotest.Manner { return dynamotest.Throttle("ThrottlingException") },
	"cut before":     func(*rand.Rand) dynamotest.Manner { return dynamotest.DropBefore() },
	"cut after":      func(*rand.Rand) dynamotest.Manner { return dynamotest.DropAfter() },
	"silent":         func(*rand.Rand) dynamotest.Manner { return dynamotest.Hang() },
	"silent after":   func(*rand.Rand) dynamotest.Manner { return dynamotest.HangAfter() },
	"500":            func(*rand.Rand) dynamotest.Manner { return dynamotest.Fail(500, "InternalServerError", "") },
	"500 after":      func(*rand.Rand) dynamotest.Manner { return dynamotest.FailAfter(500, "InternalServerError", "") },
	"any":            anyOutage,
	"any, and a key": func(r *rand.Rand) dynamotest.Manner { return anyOrHot(r) },
}

func anyOutage(rng *rand.Rand) dynamotest.Manner {
	return []dynamotest.Manner{
		dynamotest.Throttle("ThrottlingException"), dynamotest.DropBefore(), dynamotest.DropAfter(),
		dynamotest.FailAfter(500, "InternalServerError", ""), dynamotest.CutBody(),
	}[rng.IntN(5)]
}

func anyOrHot(rng *rand.Rand) dynamotest.Manner {
	if rng.IntN(2) == 0 {
		return dynamotest.Throttle("ThrottlingException", "TableWriteKeyRangeThroughputExceeded")
	}
	return anyOutage(rng)
}

// flapping tells when the table is down: every other second, from phase on.
type flapping struct {
	start time.Time
	phase time.Duration
}

func (f flapping) down() bool { return int((time.Since(f.start)+f.phase)/time.Second)%2 == 1 }

func (f flapping) fault(rng *rand.Rand, outage func(*rand.Rand) dynamotest.Manner) dynamotest.Fault {
	return dynamotest.Fault{Do: func(ctx context.Context, apply func() dynamotest.Reply) (dynamotest.Reply, error) {
		if !f.down() {
			return apply(), nil
		}
		return outage(rng)(ctx, apply)
	}}
}

func newFailover(t testing.TB, s stores.Store) *failover.Store {
	t.Helper()
	f, err := failover.New(s, failover.Config{Instances: 1, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return f
}

// fit tells whether windows that do not overlap can be laid so that each admission
// lies in one and none has more than the quota: what a fixed window promises, wherever its
// windows begin. One may begin without an admission, by a hit that was counted and
// whose answer was lost.
func fit(admitted []time.Time, limit stores.Limit) bool {
	// earliest[i] is when the last window can end at the earliest that holds admitted[i-1]
	// and nothing of what follows; zero if there is no way.
	earliest := make([]time.Time, len(admitted)+1)
	earliest[0] = time.Unix(0, 0)
	for i, first := range admitted {
		if earliest[i].IsZero() {
			continue
		}
		soonest := first.Add(1) // the window may have begun long before
		if begun := earliest[i].Add(limit.Window); begun.After(soonest) {
			soonest = begun
		}
		latest := first.Add(limit.Window)
		for j := i + 1; j <= min(len(admitted), i+limit.Quota); j++ {
			end := soonest
			if last := admitted[j-1].Add(1); last.After(end) {
				end = last
			}
			if end.After(latest) || j < len(admitted) && end.After(admitted[j]) {
				continue
			}
			if earliest[j].IsZero() || end.Before(earliest[j]) {
				earliest[j] = end
			}
		}
	}
	return !earliest[len(admitted)].IsZero()
}

func TestFit(t *testing.T) {
	at := func(seconds ...int) []time.Time {
		var times []time.Time
		for _, s := range seconds {
			times = append(times, time.Unix(int64(1000+s), 0))
		}
		return times
	}
	two := stores.FixedWindow(2, 10*time.Second)
	for _, good := range [][]time.Time{at(), at(0, 9, 10, 11, 20), at(0, 1, 10, 11), at(8, 9, 10, 11)} {
		require.True(t, fit(good, two), "%v", good)
	}
	for _, bad := range [][]time.Time{at(0, 1, 2, 3, 11), at(8, 9, 10, 11, 12), at(3, 3, 3)} {
		require.False(t, fit(bad, two), "%v", bad)
	}
}

// payments notes what a Store is told to take out of the quota.
type payments struct {
	*Store
	told, taken int
}

func (p *payments) TakeOwing(ctx context.Context, h stores.Hit, owed int, until time.Duration) (stores.Decision, error) {
	d, err := p.Store.TakeOwing(ctx, h, owed, until)
	p.told++
	if err == nil {
		p.taken++
	}
	return d, err
}

var flappingRuns = []struct {
	limit   stores.Limit
	phase   time.Duration
	windows int
}{
	{stores.FixedWindow(5, 10*time.Second), 0, 30},
	{stores.FixedWindow(5, 10*time.Second), 500 * time.Millisecond, 30},
	{stores.FixedWindow(5, 10*time.Second), time.Second, 30},
	{stores.FixedWindow(5, 10*time.Second), 1960 * time.Millisecond, 30},
	{stores.FixedWindow(60, 10*time.Second), 500 * time.Millisecond, 10},
	{stores.FixedWindow(60, 10*time.Second), time.Second, 10},
}

// The table flaps every second for 300 s while one key gets 50 hits a second: one
// instance lets no more through than the quota in any window, whatever the outages
// look like and whenever they begin, and the client gets its quota all the same. The
// larger quota takes over a second to use up, so that each window sees both paths.
func TestFlapping(t *testing.T) {
	outages := maps.Clone(outages)
	outages["refused"] = nil
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			var local, taken int
			for _, run := range flappingRuns {
				synctest.Test(t, func(t *testing.T) {
					server, flaps := dynamotest.New(t), flapping{time.Now(), run.phase}
					before := func() { server.SetDown(flaps.down()) }
					if outage != nil {
						server.SetFault(flaps.fault(rand.New(rand.NewPCG(1, 2)), outage))
						before = func() {}
					}
					shared := &payments{Store: newStore(t, server.Client())}
					l := testFlapping(t, newFailover(t, shared), run.limit, run.windows, before)
					t.Logf("%v from %v: %d let through locally, %d of %d payments taken, %d calls", run.limit, run.phase, l, shared.taken, shared.told, server.Calls(""))
					local, taken = local+l, taken+shared.taken
				})
			}
			require.Positive(t, local)
			if name == "throttled" || name == "refused" || strings.HasPrefix(name, "any") {
				require.Positive(t, taken, "definite failures make debts, and they are paid")
			}
		})
	}
}

func testFlapping(t *testing.T, f *failover.Store, limit stores.Limit, windows int, before func()) (local int) {
	start := time.Now()
	var admitted []time.Time
	for time.Since(start) < time.Duration(windows)*limit.Window {
		before()
		d, err := f.Take(t.Context(), stores.Hit{Key: "k", Limit: limit})
		require.NoError(t, err)
		if d.Allowed {
			admitted = append(admitted, time.Now())
			if d.Source == stores.Local {
				local++
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	require.True(t, fit(admitted, limit), "%d admitted, too many in some window", len(admitted))
	require.LessOrEqual(t, len(admitted), windows*limit.Quota)
	require.GreaterOrEqual(t, len(admitted), (windows-2)*limit.Quota)
	return local
}
