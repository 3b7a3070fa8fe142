package meter

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// told is a model and the block around it.
type told struct {
	model
	limit   stores.Limit
	blocked int64
}

func (m *told) fits(cost, now int64) bool {
	return new(big.Rat).Add(m.level(now), rat(cost)).Cmp(rat(int64(m.limit.Quota))) <= 0
}

// wait finds by halving how long it is until a hit fits: once it does it goes on to.
func (m *told) wait(cost, now int64) int64 {
	low, high := int64(-1), 2*int64(m.limit.Window/time.Microsecond)*int64(1+ceil(m.level(now))/int64(m.limit.Quota))
	for high-low > 1 {
		middle := (low + high) / 2
		if c := (&told{model: m.clone(), limit: m.limit}); c.fits(cost, now+middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

func (m *told) answer(cost, now int64, peek bool) Answer {
	quota, block := int64(m.limit.Quota), int64(m.limit.Block/time.Microsecond)
	var a Answer
	rest := max(0, m.blocked-now)
	delay := max(0, m.over(now)-now)
	a.Allowed = cost <= quota && rest == 0 && m.fits(cost, now)
	switch {
	case a.Allowed && !peek:
		m.add(cost, now)
		if m.limit.Algorithm == stores.Leaky {
			a.Delay = delay
		}
	case !a.Allowed && cost <= quota:
		a.Retry = max(rest, m.wait(cost, now))
		if rest == 0 {
			a.Retry = max(a.Retry, block)
			if block > 0 && !peek {
				m.blocked = now + a.Retry
			}
		}
	}
	if now >= m.blocked {
		a.Remaining = max(0, quota-ceil(m.level(now)))
	}
	a.Reset = max(0, m.over(now)-now, a.Retry, m.blocked-now)
	return a
}

// Every step of long random histories, with mixed costs, refunds, debts and quotas that
// change, is answered as the model answers it.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(400) {
		history(t, seed, 150)
	}
}

func FuzzAgainstModel(f *testing.F) {
	f.Add(uint64(1 << 40))
	f.Add(uint64(77))
	f.Fuzz(func(t *testing.T, seed uint64) { history(t, seed, 300) })
}

var counted = []stores.Algorithm{stores.Fixed, stores.Sliding, stores.Token, stores.Leaky}

func randomLimit(rng *rand.Rand) stores.Limit {
	l := stores.Limit{Algorithm: counted[rng.IntN(len(counted))], Quota: 1 + rng.IntN(9)}
	l.Window = time.Millisecond + time.Duration(rng.IntN(20_000))*time.Microsecond
	if rng.IntN(3) == 0 {
		l.Block = time.Millisecond + time.Duration(rng.IntN(40_000))*time.Microsecond
	}
	return l
}

func history(t *testing.T, seed uint64, steps int) {
	rng := rand.New(rand.NewPCG(seed, 5))
	limit := randomLimit(rng)
	var s State
	m := &told{model: modelOf(limit), limit: limit}
	now := int64(1 + rng.IntN(1000))
	window := int64(limit.Window / time.Microsecond)
	var last Answer
	for step := range steps {
		switch rng.IntN(8) {
		case 0: // no time goes by
		case 1:
			now += last.Retry
		case 2:
			now += max(0, last.Retry-1)
		case 3:
			now += last.Reset
		case 4:
			now += rng.Int64N(3)
		case 5:
			now += rng.Int64N(3 * window)
		default:
			now += rng.Int64N(1 + window/int64(limit.Quota))
		}
		if rng.IntN(12) == 0 {
			m.level(now) // what has drained until now has drained at the old pace
			limit.Quota = 1 + rng.IntN(9)
			m.limit = limit
			m.quota(int64(limit.Quota))
		}
		rule := Of(limit)
		cost := int64(1)
		if rng.IntN(2) == 0 {
			cost = 1 + rng.Int64N(rule.Quota+1)
		}
		var got, want Answer
		switch op := rng.IntN(10); op {
		case 0:
			rule.Refund(&s, cost, now)
			m.refund(min(cost, rule.Quota), now)
		case 1:
			owed, until := rng.Int64N(rule.Quota+2), rng.Int64N(window+1)
			rule.Pay(&s, owed, until, now)
			if owed > 0 && until > 0 {
				m.pay(min(owed, rule.Quota), until, now)
			}
		case 2, 3:
			before := s
			got, want = rule.Peek(s, cost, now), m.answer(cost, now, true)
			require.Equal(t, before, s)
		default:
			got, want = rule.Take(&s, cost, now), m.answer(cost, now, false)
		}
		require.Equal(t, want, got, "seed %d step %d: %s cost %d at %d, state %+v", seed, step, limit, cost, now, s)
		require.Equal(t, ceil(m.level(now)), rule.Used(s, now), "seed %d step %d: %s", seed, step, limit)
		until := max(now, rule.Until(s))
		require.GreaterOrEqual(t, until, max(m.over(now), m.blocked), "seed %d step %d: %s", seed, step, limit)
		then, none := s, State{}
		require.Equal(t, rule.Take(&none, cost, until), rule.Take(&then, cost, until), "seed %d step %d: %s: a state is as good as none then", seed, step, limit)
		last = got
	}
}
