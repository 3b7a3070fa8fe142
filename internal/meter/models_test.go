package meter

import (
	"math/big"
	"time"

	"github.com/sallyport/sallyport/stores"
)

// model is what a limit means, told again in other words: with fractions instead of
// integers, and with waits that are found by trying.
type model interface {
	level(now int64) *big.Rat // how much is used
	add(cost, now int64)      // a hit that was allowed
	refund(cost, now int64)   //
	pay(owed, until, now int64)
	quota(q int64)
	over(now int64) int64 // when nothing is used any more, or before now
	clone() model
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func most(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

func ceil(r *big.Rat) int64 {
	n := new(big.Int).Add(r.Num(), new(big.Int).Sub(r.Denom(), big.NewInt(1)))
	return n.Div(n, r.Denom()).Int64()
}

// fixedModel has one window at a time.
type fixedModel struct {
	window, q  int64
	open       bool
	end, count int64
}

func (m *fixedModel) at(now int64) {
	if m.open && now >= m.end {
		m.open, m.count = false, 0
	}
}

func (m *fixedModel) level(now int64) *big.Rat { m.at(now); return rat(m.count) }

func (m *fixedModel) add(cost, now int64) {
	if m.at(now); !m.open {
		m.open, m.end = true, now+m.window
	}
	m.count += cost
}

func (m *fixedModel) refund(cost, now int64) {
	m.at(now)
	m.count = max(0, min(m.count, m.q)-cost)
}

func (m *fixedModel) pay(owed, until, now int64) {
	if m.at(now); !m.open {
		m.open, m.end = true, now+until
	}
	if m.count < m.q {
		m.count = min(m.q, m.count+owed)
	}
}

func (m *fixedModel) quota(q int64) { m.q = q }

func (m *fixedModel) over(now int64) int64 {
	if m.at(now); m.open {
		return m.end
	}
	return 0
}

func (m *fixedModel) clone() model { c := *m; return &c }

// slidingModel has a row of windows from the first hit on; each begins where the one
// before it ends. An empty one ends the row.
type slidingModel struct {
	window, q int64
	ends      []int64
	counts    []int64
}

func (m *slidingModel) at(now int64) {
	for len(m.ends) > 0 && now >= m.ends[len(m.ends)-1] {
		last := len(m.ends) - 1
		if m.counts[last] == 0 || now >= m.ends[last]+m.window {
			m.ends, m.counts = nil, nil
			return
		}
		m.ends, m.counts = append(m.ends, m.ends[last]+m.window), append(m.counts, 0)
	}
}

func (m *slidingModel) level(now int64) *big.Rat {
	m.at(now)
	n := len(m.ends)
	switch n {
	case 0:
		return new(big.Rat)
	case 1:
		return rat(m.counts[0])
	}
	share := big.NewRat(m.ends[n-1]-now, m.window)
	share = least(share, rat(1))
	return share.Add(share.Mul(share, rat(m.counts[n-2])), rat(m.counts[n-1]))
}

func (m *slidingModel) open(end, now int64) {
	if m.at(now); len(m.ends) == 0 {
		m.ends, m.counts = []int64{end}, []int64{0}
	}
}

func (m *slidingModel) add(cost, now int64) {
	m.open(now+m.window, now)
	m.counts[len(m.counts)-1] += cost
}

func (m *slidingModel) refund(cost, now int64) {
	m.at(now)
	for n := len(m.counts) - 1; n >= max(0, len(m.counts)-2) && cost > 0; n-- {
		have := min(m.counts[n], m.q)
		taken := min(have, cost)
		m.counts[n] = have - taken
		cost -= taken
	}
}

func (m *slidingModel) pay(owed, until, now int64) {
	m.open(now+until, now)
	free := m.q - ceil(m.level(now))
	m.counts[len(m.counts)-1] += min(owed, max(0, free))
}

func (m *slidingModel) quota(q int64) { m.q = q }

func (m *slidingModel) over(now int64) int64 {
	m.at(now)
	n := len(m.ends)
	switch {
	case n > 0 && m.counts[n-1] > 0:
		return m.ends[n-1] + m.window
	case n > 1 && m.counts[n-2] > 0:
		return m.ends[n-1]
	}
	return 0
}

func (m *slidingModel) clone() model {
	c := *m
	c.ends, c.counts = append([]int64(nil), m.ends...), append([]int64(nil), m.counts...)
	return &c
}

// bucketModel is a bucket that drains by one unit in each drop; of a quota that
// changes the time is kept in which the bucket drains.
type bucketModel struct {
	window, q int64
	seen      int64
	fill      *big.Rat
}

func (m *bucketModel) drop() *big.Rat { return rat((m.window + m.q - 1) / m.q) }

func (m *bucketModel) level(now int64) *big.Rat {
	drained := new(big.Rat).Quo(rat(now-m.seen), m.drop())
	m.fill = most(new(big.Rat), new(big.Rat).Sub(m.fill, drained))
	m.seen = now
	return m.fill
}

func (m *bucketModel) add(cost, now int64) { m.fill = new(big.Rat).Add(m.level(now), rat(cost)) }

func (m *bucketModel) refund(cost, now int64) {
	m.fill = most(new(big.Rat), new(big.Rat).Sub(least(m.level(now), rat(m.q)), rat(cost)))
}

func (m *bucketModel) pay(owed, _, now int64) {
	if level := m.level(now); level.Cmp(rat(m.q)) < 0 {
		m.fill = least(rat(m.q), new(big.Rat).Add(level, rat(owed)))
	}
}

func (m *bucketModel) quota(q int64) {
	time := new(big.Rat).Mul(m.fill, m.drop())
	m.q = q
	m.fill = time.Quo(time, m.drop())
}

func (m *bucketModel) over(now int64) int64 {
	return now + ceil(new(big.Rat).Mul(m.level(now), m.drop()))
}

func (m *bucketModel) clone() model { c := *m; return &c }

func modelOf(l stores.Limit) model {
	window := int64(l.Window / time.Microsecond)
	switch l.Algorithm {
	case stores.Sliding:
		return &slidingModel{window: window, q: int64(l.Quota)}
	case stores.Token, stores.Leaky:
		return &bucketModel{window: window, q: int64(l.Quota), fill: new(big.Rat)}
	}
	return &fixedModel{window: window, q: int64(l.Quota)}
}
