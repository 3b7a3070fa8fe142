package dynamo

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// model is what a key's limit means, in a few lines: package meter, or for a log a list
// of stamps.
type model struct {
	state  meter.State
	stamps []int64
}

// live drops what is over by now and sorts the rest.
func (m *model) live(t *taking, now int64) []int64 {
	live := slices.DeleteFunc(slices.Clone(m.stamps), func(stamp int64) bool { return now >= stamp+t.rule.Window })
	slices.Sort(live)
	return live
}

func (m *model) pay(t *taking, owed, until, now int64) {
	if t.rule.Algorithm != stores.Log {
		before := m.state
		if t.rule.Pay(&m.state, owed, until, now); m.rolled(t, before, now) {
			m.state = before // what changes no level changes nothing in the table, not even what has rolled on
		}
		return
	}
	for range min(owed, t.rule.Quota-int64(len(m.live(t, now)))) {
		m.stamps = append(m.stamps, now+until-t.rule.Window)
	}
}

// rolled reports that two windows have only become what they are by now.
func (m *model) rolled(t *taking, before meter.State, now int64) bool {
	switch {
	case t.rule.Algorithm != stores.Sliding:
		return false
	case now < before.End:
	case before.N > 0 && now < before.End+t.rule.Window:
		before.P, before.N, before.End = before.N, 0, before.End+t.rule.Window
	default:
		before.P, before.N, before.End = 0, 0, 0
	}
	return m.state == before
}

func (m *model) refund(t *taking, now int64) {
	if t.rule.Algorithm != stores.Log {
		before := m.state
		if t.rule.Refund(&m.state, t.cost, now); m.rolled(t, before, now) {
			m.state = before
		}
		return
	}
	live := m.live(t, now)
	live = live[max(0, int64(len(live))-t.rule.Quota):]
	over := slices.DeleteFunc(slices.Clone(m.stamps), func(stamp int64) bool { return now < stamp+t.rule.Window })
	m.stamps = append(over, live[:max(0, int64(len(live))-t.cost)]...)
}

func (m *model) take(t *taking, now int64, peek bool) meter.Answer {
	if t.rule.Algorithm != stores.Log {
		if peek {
			return t.rule.Peek(m.state, t.cost, now)
		}
		return t.rule.Take(&m.state, t.cost, now)
	}
	live := m.live(t, now)
	level, r := int64(len(live)), t.rule
	newest := func() int64 {
		if len(live) == 0 {
			return 0
		}
		return min(r.Window, live[len(live)-1]+r.Window-now)
	}
	blocked := max(0, m.state.Block-now)
	var a meter.Answer
	if level+t.cost <= r.Quota && blocked == 0 {
		a.Allowed = true
		a.Remaining, a.Reset = r.Quota-level, newest()
		if !peek {
			for range t.cost {
				live = append(live, now)
				m.stamps = append(m.stamps, now)
			}
			slices.Sort(live)
			a.Remaining, a.Reset = a.Remaining-t.cost, newest()
		}
		return a
	}
	if t.cost <= r.Quota {
		a.Retry = blocked
		if gone := level + t.cost - r.Quota; gone > 0 {
			a.Retry = max(a.Retry, min(r.Window, live[gone-1]+r.Window-now))
		}
		if blocked == 0 {
			a.Retry = max(a.Retry, r.Block)
		}
	}
	if blocked == 0 && (peek || r.Block == 0 || t.cost > r.Quota) {
		a.Remaining = max(0, r.Quota-level)
	}
	if blocked == 0 && r.Block > 0 && t.cost <= r.Quota && !peek {
		m.state.Block = now + a.Retry
	}
	a.Reset = max(a.Retry, newest(), blocked)
	return a
}

// The table says what the model says, to the last digit, whatever comes in whatever
// order by instances whose clocks differ: hits, payments, refunds, peeks and resets, of
// any cost, under a quota that changes.
func TestMeaning(t *testing.T) {
	seeds := uint64(40)
	if RaceDetector {
		seeds = 5
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			server := dynamotest.New(t)
			server.SetFault(dynamotest.Fault{Do: dynamotest.NoDate()})
			testMeaning(t, server.Client(), seed, 150)
		})
	}
}

func TestMeaningOnDynalite(t *testing.T) {
	client := dynamotest.Dynalite(t)
	undated := dynamotest.NewClient(*client.Options().BaseEndpoint, undated{http.DefaultTransport})
	for seed := range uint64(10) {
		testMeaning(t, undated, 1000+seed, 100)
	}
}

// undated keeps the Date of answers to itself, so that no clock is corrected.
type undated struct{ http.RoundTripper }

func (u undated) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Header.Set("Date", "")
	}
	return resp, err
}

// testMeaning takes random steps. The clocks are its own, so that an engine in another
// process will do.
func testMeaning(t *testing.T, client *dynamodb.Client, seed uint64, steps int) {
	rng := rand.New(rand.NewPCG(seed, 11))
	now := time.Now()
	skews := []time.Duration{0, 0, time.Duration(rng.IntN(2000)-1000) * time.Millisecond, 3 * time.Second}
	var instances []*Store
	for _, skew := range skews[:2+rng.IntN(3)] {
		s := newStore(t, client)
		s.clock.read = func() time.Time { return now.Add(skew) }
		instances = append(instances, s)
	}
	window := time.Duration(1+rng.IntN(4_000_000)) * time.Microsecond
	for i, limit := range everyLimit(1+rng.IntN(12), max(window, time.Millisecond)) {
		if rng.IntN(2) == 0 {
			limit = limit.BlockFor(time.Duration(1+rng.IntN(8000)) * time.Millisecond)
		}
		key := fmt.Sprintf("k%d-%d", seed, i)
		var m model
		var done []string
		for step := range steps {
			if rng.IntN(20) == 0 {
				limit.Quota = 1 + rng.IntN(12)
			}
			s := instances[rng.IntN(len(instances))]
			if limit.Algorithm == stores.Log {
				// A clock that is ahead may claim the slot of a stamp that is over by it
				// alone, and which one is left to chance.
				s = instances[rng.IntN(2)]
			}
			h := stores.Hit{Key: key, Limit: limit, Cost: 1 + rng.IntN(min(limit.Quota, 4))}
			if rng.IntN(15) == 0 {
				h.Cost = limit.Quota + rng.IntN(3)
			}
			tk := newTaking(s, h)
			at := tk.now(s.clock.read())
			calls := &counter{Client: client}
			s.client = calls
			var got, want stores.Decision
			var err error
			what := rng.IntN(20)
			most := 2
			switch {
			case what < 4:
				owed, until := 1+rng.IntN(2*limit.Quota), time.Duration(1+rng.Int64N(int64(limit.Window)))
				done = append(done, fmt.Sprintf("%v by %v: %v owes %d until %v", now.UnixMicro(), at, h, owed, until))
				got, err = s.TakeOwing(t.Context(), h, owed, until)
				m.pay(tk, int64(owed), tk.units(until), at)
				want = tk.decision(m.take(tk, at, false))
				most = 3
			case what < 14:
				done = append(done, fmt.Sprintf("%v by %v: %v", now.UnixMicro(), at, h))
				got, err = s.Take(t.Context(), h)
				if h.Cost <= limit.Quota {
					want = tk.decision(m.take(tk, at, false))
				}
				most = 3
			case what < 16:
				done = append(done, fmt.Sprintf("%v by %v: peek %v", now.UnixMicro(), at, h))
				got, err = s.Peek(t.Context(), h)
				a := m.take(tk, at, true)
				if a.Allowed && a.Remaining == tk.rule.Quota {
					a.Reset = 0
				}
				want = tk.decision(a)
			case what < 19:
				done = append(done, fmt.Sprintf("%v by %v: refund %v", now.UnixMicro(), at, h))
				err = s.Refund(t.Context(), h)
				m.refund(tk, at)
			default:
				done = append(done, fmt.Sprintf("%v by %v: reset", now.UnixMicro(), at))
				err = s.Reset(t.Context(), h)
				m = model{}
			}
			before := done[max(0, len(done)-12):]
			require.NoError(t, err, "seed %d step %d: %v", seed, step, before)
			require.Equal(t, want, got, "seed %d step %d: %v", seed, step, before)
			require.LessOrEqual(t, int(calls.updates.Load()), most, "nobody interferes: two calls are enough, and one to start a block")
			switch rng.IntN(4) {
			case 0:
				now = now.Add(time.Duration(rng.Int64N(int64(window)/2 + 1)))
			case 1:
				now = now.Add(time.Duration(rng.Int64N(int64(window)/20 + 1)))
			case 2:
				if !got.Allowed {
					now = now.Add(got.RetryAfter)
				}
			}
		}
	}
}
