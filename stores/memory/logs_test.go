package memory

import (
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// units is a log told again: one stamp for each unit, in a slice.
type units struct {
	stamps []int64
	block  int64
}

func (u *units) expire(over int64) {
	for len(u.stamps) > 0 && u.stamps[0] <= over {
		u.stamps = u.stamps[1:]
	}
}

func (u *units) add(stamp, count int64) {
	for range count {
		u.stamps = append(u.stamps, stamp)
	}
	sort.Slice(u.stamps, func(i, j int) bool { return u.stamps[i] < u.stamps[j] })
}

func (u *units) refund(cost, quota int64) {
	if over := int64(len(u.stamps)) - quota; over > 0 {
		u.stamps = u.stamps[over:]
	}
	u.stamps = u.stamps[:max(0, int64(len(u.stamps))-cost)]
}

func (u *units) answer(limit stores.Limit, cost, now int64, peek bool) meter.Answer {
	quota, window, block := int64(limit.Quota), ceilMicrosecond(limit.Window), ceilMicrosecond(limit.Block)
	live, rest := int64(len(u.stamps)), max(0, u.block-now)
	var a meter.Answer
	switch {
	case cost > quota:
	case live+cost <= quota && rest == 0:
		a.Allowed = true
		if !peek {
			u.add(now, cost)
		}
	default:
		if live+cost > quota {
			a.Retry = u.stamps[live+cost-quota-1] + window - now
		}
		if a.Retry = max(a.Retry, rest); rest == 0 {
			a.Retry = max(a.Retry, block)
			if block > 0 && !peek {
				u.block = now + a.Retry
			}
		}
	}
	if now >= u.block {
		a.Remaining = max(0, quota-int64(len(u.stamps)))
	}
	if len(u.stamps) > 0 {
		a.Reset = u.stamps[len(u.stamps)-1] + window - now
	}
	a.Reset = max(a.Reset, a.Retry, u.block-now)
	return a
}

// check walks all logs of a table and fails when pages or counts don't hang together.
func (l *logs) check(t testing.TB, keys []string) {
	t.Helper()
	used := make(map[uint32]bool)
	page := func(n uint32) {
		require.False(t, used[n], "page %d is in two places", n)
		used[n] = true
	}
	pages := 0
	for _, key := range keys {
		i := l.Find(l.Hash(key))
		if i < 0 {
			continue
		}
		q := l.At(i)
		pages += int(q.pages)
		if q.pages == 0 {
			require.Zero(t, q.live)
			continue
		}
		sum, before, newest := int64(0), int64(-1<<50), int64(0)
		count := uint32(0)
		for n, prev := q.head, noPage; n != noPage; prev, n = n, l.pages.all[n].next {
			page(n)
			if count++; count > 1 {
				require.Equal(t, prev, l.pages.all[n].prev)
			}
			first, end := 0, perPage
			if n == q.head {
				first = int(q.first)
			}
			if n == q.tail {
				end = int(q.end)
			}
			require.Less(t, first, end, "no page is empty")
			for _, e := range l.pages.all[n].entries[first:end] {
				require.LessOrEqual(t, before, e.stamp(), "the oldest first")
				require.Positive(t, e.count())
				before, newest = e.stamp(), e.stamp()
				sum += e.count()
			}
			if n == q.tail {
				break
			}
		}
		require.Equal(t, q.pages, count)
		require.Equal(t, q.live, sum)
		require.Equal(t, l.pages.newest(q).stamp(), newest)
	}
	require.LessOrEqual(t, l.Len()+pages, l.pages.most, "keys and pages together stay within the cap")
	require.LessOrEqual(t, len(l.pages.all), l.pages.most)
	require.Equal(t, l.pages.most-pages, l.Room(), "what is set aside is what is used")
	for n := l.pages.free; n != noPage; n = l.pages.all[n].next {
		page(n)
	}
	require.Len(t, used, len(l.pages.all), "no page is lost")
}

// A log answers every step of long random histories as a slice of stamps does.
func TestLogAgainstModel(t *testing.T) {
	for seed := range uint64(100) {
		logHistory(t, seed, 150)
	}
}

func FuzzLogAgainstModel(f *testing.F) {
	f.Add(uint64(1))
	f.Add(uint64(1 << 50))
	f.Fuzz(func(t *testing.T, seed uint64) { logHistory(t, seed, 500) })
}

func logHistory(t *testing.T, seed uint64, steps int) {
	rng := rand.New(rand.NewPCG(seed, 11))
	most := 1 + rng.IntN(60)
	if rng.IntN(8) == 0 {
		most = 20_000 // counts of more than an entry takes
	}
	limit := stores.SlidingLog(1+rng.IntN(most), time.Millisecond+time.Duration(rng.IntN(20_000))*time.Microsecond)
	if rng.IntN(3) == 0 {
		limit.Block = time.Millisecond + time.Duration(rng.IntN(40_000))*time.Microsecond
	}
	window := ceilMicrosecond(limit.Window)
	l := newLogs(10_000)
	var u units
	reading, now := int64(1), int64(0)
	var last stores.Decision
	for step := range steps {
		switch rng.IntN(8) {
		case 0:
		case 1:
			reading += int64(last.RetryAfter)
		case 2:
			reading += int64(last.ResetAfter)
		case 3:
			reading = max(1, reading-rng.Int64N(int64(limit.Window))) // an older reading is as good as the newest
		case 4:
			reading += rng.Int64N(3 * int64(limit.Window))
		default:
			reading += rng.Int64N(1 + int64(limit.Window)/int64(limit.Quota))
		}
		now = max(now, reading/1000)
		u.expire(now - window)
		if rng.IntN(25) == 0 {
			limit.Quota = 1 + rng.IntN(most)
		}
		quota := int64(limit.Quota)
		cost := int64(1)
		switch rng.IntN(4) {
		case 0:
			cost = 1 + rng.Int64N(quota+1)
		case 1:
			cost = 1 + rng.Int64N(1+quota/5)
		}
		var got stores.Decision
		var want meter.Answer
		switch rng.IntN(12) {
		case 0:
			l.refund("key", limit, cost, reading)
			u.refund(cost, quota)
		case 1, 2:
			got, want = l.peek("key", limit, cost, reading), u.answer(limit, cost, now, true)
		case 3, 4:
			owed, until := rng.Int64N(quota+2), time.Duration(rng.Int64N(int64(limit.Window)+1))
			if until > 0 {
				u.add(now+ceilMicrosecond(until)-window, min(owed, max(0, quota-int64(len(u.stamps)))))
				u.expire(now - window)
			}
			if until == 0 {
				owed = 0
			}
			got, want = l.take("key", limit, cost, owed, until, reading), u.answer(limit, cost, now, false)
		case 5:
			l.peek("key", limit, 1, reading)
			if rng.IntN(10) == 0 {
				l.reset("key")
				u = units{}
			}
		default:
			got, want = l.take("key", limit, cost, 0, 0, reading), u.answer(limit, cost, now, false)
		}
		if len(u.stamps) == 0 && u.block <= now {
			require.Zero(t, l.Room()-l.pages.most)
		}
		if got.Source == stores.Local {
			require.Equal(t, want.Decision(stores.Local), got, "seed %d step %d: %s cost %d at %d", seed, step, limit, cost, now)
		}
		if step%8 == 0 {
			l.check(t, []string{"key"})
		}
		last = got
	}
	l.check(t, []string{"key"})
}
