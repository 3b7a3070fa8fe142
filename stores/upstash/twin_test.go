package upstash

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
)

// twin is what the script must answer: package meter's answer, in the script's unit.
type twin interface {
	take(cost, now int64) meter.Answer
	peek(cost, now int64) meter.Answer
	refund(cost, now int64)
	pay(owed, until, now int64)
	limit(a args, l stores.Limit) // of the next step; its quota may be another one
}

type meterTwin struct {
	rule meter.Rule
	s    meter.State
}

func (m *meterTwin) limit(a args, l stores.Limit) {
	m.rule = meter.Of(l)
	m.rule.Window, m.rule.Block = a.length, a.block
}
func (m *meterTwin) take(cost, now int64) meter.Answer { return m.rule.Take(&m.s, cost, now) }
func (m *meterTwin) peek(cost, now int64) meter.Answer { return m.rule.Peek(m.s, cost, now) }
func (m *meterTwin) refund(cost, now int64)            { m.rule.Refund(&m.s, cost, now) }
func (m *meterTwin) pay(owed, until, now int64)        { m.rule.Pay(&m.s, owed, until, now) }

// logTwin keeps a stamp for each unit and looks at all of them each time.
type logTwin struct {
	args
	stamps []int64
	until  int64 // of the block
}

func (m *logTwin) limit(a args, _ stores.Limit) { m.args = a }

func (m *logTwin) live(now int64) int64 {
	m.stamps = slices.DeleteFunc(m.stamps, func(t int64) bool { return now >= t+m.length })
	slices.Sort(m.stamps)
	return int64(len(m.stamps))
}

func (m *logTwin) reset(now int64) int64 {
	if m.live(now) == 0 {
		return 0
	}
	return m.stamps[len(m.stamps)-1] + m.length - now
}

func (m *logTwin) add(at, n int64) {
	m.stamps = append(m.stamps, slices.Repeat([]int64{at}, int(n))...)
}

func (m *logTwin) peek(cost, now int64) meter.Answer {
	a := meter.Answer{Remaining: max(0, m.quota-m.live(now)), Reset: m.reset(now)}
	blocked := max(0, m.until-now)
	if a.Allowed = cost <= m.quota && m.live(now)+cost <= m.quota && blocked == 0; a.Allowed {
		return a
	}
	if cost <= m.quota {
		// The first moment at which enough have gone.
		for i := range m.stamps {
			if int64(len(m.stamps)-i)+cost > m.quota {
				a.Retry = m.stamps[i] + m.length - now
			}
		}
		if blocked == 0 {
			blocked = m.block
		}
		a.Retry = max(a.Retry, blocked)
	}
	if now < m.until {
		a.Remaining = 0
	}
	a.Reset = max(a.Reset, a.Retry, m.until-now)
	return a
}

func (m *logTwin) take(cost, now int64) meter.Answer {
	a := m.peek(cost, now)
	switch {
	case a.Allowed:
		m.add(now, cost)
		a.Remaining, a.Reset = m.quota-m.live(now), m.reset(now)
	case m.block > 0 && cost <= m.quota && now >= m.until:
		m.until, a.Remaining = now+a.Retry, 0
	}
	return a
}

func (m *logTwin) refund(cost, now int64) {
	above := max(0, m.live(now)-m.quota)
	m.stamps = m.stamps[above:]
	m.stamps = m.stamps[:max(0, int64(len(m.stamps))-cost)]
}

func (m *logTwin) pay(owed, until, now int64) {
	m.add(now+until-m.length, max(0, min(owed, m.quota-m.live(now))))
}

// timed is the script with the time put in, as its last two arguments.
func timed(t *testing.T) string {
	const ask = "redis.pcall('TIME')"
	require.Equal(t, 1, strings.Count(script, ask))
	return strings.Replace(script, ask, "{ARGV[#ARGV - 1], ARGV[#ARGV]}", 1)
}

// profile is a limit whose quota changes from step to step, and how time goes.
type profile struct {
	name        string
	quota       int // the largest
	window      time.Duration
	pause, cost int64 // in us, and units: the largest
}

// TestTwin takes random steps with the script and with package meter, which has to answer
// the same to the last unit: on the embedded Redis, and on a redis-server, whose Lua has
// no integers. No key is ever without an expiry, or has one that ends before its state.
func TestTwin(t *testing.T) {
	const year = 365 * 24 * time.Hour
	profiles := []profile{
		{"small", 12, time.Hour, 20 * 60 * 1e6, 5},
		{"odd", 7, 1234567 * time.Microsecond, 400 * 1e3, 3},
		{"one", 1, time.Minute, 60 * 1e6, 1},
		{"large", 900, time.Hour, 20 * 60 * 1e6, 500},
		{"huge", 1<<53/(3600*1000) - 1, time.Hour, 20 * 60 * 1e6, 1 << 30},
		{"ten years", 28000, 10 * year, 2e14, 9000},
	}
	for _, server := range []struct {
		name string
		new  func(testing.TB) *upstashtest.Server
	}{{"miniredis", upstashtest.New}, {"redis-server", upstashtest.NewReal}} {
		t.Run(server.name, func(t *testing.T) {
			srv := server.new(t)
			sha, err := srv.Do("SCRIPT", "LOAD", timed(t))
			require.NoError(t, err)
			for _, algorithm := range []stores.Algorithm{stores.Fixed, stores.Sliding, stores.Token, stores.Leaky, stores.Log} {
				for i, p := range profiles {
					if algorithm == stores.Log && p.quota > maxLog {
						p.quota, p.cost = 40, 10
					}
					if algorithm == stores.Fixed && p.name == "huge" {
						p.quota, p.cost = 1<<53-1, 1<<51
					}
					for _, block := range []time.Duration{0, p.window / 3, 2 * p.window} {
						if algorithm == stores.Fixed && block == 0 || block > 10*year {
							continue
						}
						limit := stores.Limit{Algorithm: algorithm, Quota: p.quota, Window: p.window, Block: block}
						require.NoError(t, limit.Validate())
						t.Run(fmt.Sprintf("%s %s %v", algorithm, p.name, block), func(t *testing.T) {
							twinSteps(t, srv, sha.(string), limit, p, rand.New(rand.NewPCG(uint64(i), 3)))
						})
					}
				}
			}
		})
	}
}

func twinSteps(t *testing.T, srv *upstashtest.Server, sha string, limit stores.Limit, p profile, rng *rand.Rand) {
	key := t.Name()
	var m twin = &meterTwin{}
	if limit.Algorithm == stores.Log {
		m = &logTwin{}
	}
	now := int64(1_798_000_000_123_456) // microseconds
	var last meter.Answer
	grain := int64(argsOf(stores.Hit{Limit: limit}).unit / time.Microsecond)
	var history []string
	for n := range 80 {
		switch rng.IntN(12) {
		case 0, 1, 2, 3, 4, 5:
			now += rng.Int64N(p.pause) >> rng.IntN(12)
		case 6: // as told, and a bit to either side
			now += max(0, last.Retry*grain+rng.Int64N(3)-1)
		case 7:
			now += max(0, last.Reset*grain+rng.Int64N(3)-1)
		case 8: // in whole milliseconds, so that it is as told for those that count in them
			now = (now/grain + last.Retry) * grain
		case 9: // to the seam of two windows
			now = (now/grain + max(0, last.Reset-argsOf(stores.Hit{Limit: limit}).length)) * grain
		}
		l := limit
		if rng.IntN(6) == 0 {
			l.Quota = 1 + rng.IntN(limit.Quota)
		}
		a := argsOf(stores.Hit{Key: key, Limit: l, Cost: int(1 + rng.Int64N(p.cost)>>rng.IntN(8))})
		if rng.IntN(4) == 0 {
			require.NoError(t, a.owing(l, 1+rng.IntN(l.Quota+2), time.Duration(1+rng.Int64N(int64(l.Window)))))
		}
		at := now / grain
		m.limit(a, l)
		step := []string{take, take, take, take, take, take, refund, peek}[rng.IntN(8)]
		if step != take {
			a.owed, a.until = 0, 0
		}
		var want meter.Answer
		if step == take {
			m.pay(a.owed, a.until, at)
			want = m.take(a.cost, at)
		} else if step == refund {
			m.refund(a.cost, at)
		} else {
			want = m.peek(a.cost, at)
		}
		last = want
		command := commands(t, evalshaBody(sha, step, []asked{{args: a, key: key}}))[0]
		history = append(history, fmt.Sprint(now, command[4:], want))
		command = append(command, fmt.Sprint(now/1e6), fmt.Sprint(now%1e6))
		args := make([]any, len(command))
		for i := range command {
			args[i] = command[i]
		}
		answer, err := srv.Do(args...)
		require.NoError(t, err)
		var row []int64
		for _, n := range answer.([]any) {
			number, is := n.(int64)
			require.True(t, is, "%v", answer)
			row = append(row, number)
		}
		tail := strings.Join(history[max(0, len(history)-12):], "\n")
		if step != refund {
			yes := int64(0)
			if want.Allowed {
				yes = 1
			}
			require.Equal(t, []int64{yes, want.Remaining, want.Retry, want.Reset, want.Delay}, row, tail)
		}
		require.True(t, a.sound(step, row), "%s %v\n%s", step, row, tail)
		if n%4 > 0 {
			continue
		}
		left, err := srv.Do("PTTL", key)
		require.NoError(t, err)
		require.NotEqual(t, int64(-1), left)
		if meters, is := m.(*meterTwin); is && step == take && row[0] == 1 {
			// It was written just now. A minute is for a slow machine.
			rest := (meters.rule.Until(meters.s) - at) * grain / 1000
			require.Greater(t, left.(int64), rest-60_000)
			require.LessOrEqual(t, left.(int64), rest+2)
			if srv.Mini() != nil { // whose time stands still
				require.GreaterOrEqual(t, left.(int64), rest)
			}
		}
	}
	_, err := srv.Do("DEL", key)
	require.NoError(t, err)
}
