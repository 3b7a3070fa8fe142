package meter

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// wander brings a state somewhere by random steps and returns it with the time of the
// last of them.
func wander(rng *rand.Rand, rule *Rule) (s State, now int64) {
	now = 1 + rng.Int64N(5*rule.Window)
	for range rng.IntN(30) {
		cost := 1 + rng.Int64N(rule.Quota)
		switch rng.IntN(8) {
		case 0:
			rule.Refund(&s, cost, now)
		case 1:
			rule.Pay(&s, cost, 1+rng.Int64N(rule.Window), now)
		default:
			rule.Take(&s, cost, now)
		}
		now += rng.Int64N(1 + rule.Window/(1+rng.Int64N(2*rule.Quota)))
	}
	return s, now
}

func randomRule(rng *rand.Rand) Rule {
	l := randomLimit(rng)
	if rng.IntN(5) == 0 {
		l.Algorithm = stores.Log
	}
	return Of(l)
}

// A hit with an older reading of the clock is never treated better than one with the newest,
// and it leaves no key with more room than before.
func TestOlderReadingsMintNothing(t *testing.T) {
	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 6))
		rule := randomRule(rng)
		s, now := wander(rng, &rule)
		older := max(0, now-rng.Int64N(3*rule.Window))
		cost := 1 + rng.Int64N(rule.Quota)
		used := rule.Used(s, now)

		late, prompt := s, s
		a := rule.Take(&late, cost, older)
		b := rule.Take(&prompt, cost, now)
		require.True(t, b.Allowed || !a.Allowed, "seed %d: %+v of %+v: at %d allowed, at %d not", seed, rule, s, older, now)
		require.GreaterOrEqual(t, rule.Used(late, now), used, "seed %d", seed)
		require.LessOrEqual(t, rule.Used(late, now), max(used, rule.Quota), "seed %d", seed)
		require.GreaterOrEqual(t, a.Retry, int64(0))
		require.GreaterOrEqual(t, a.Reset, a.Retry)
	}
}

// A refusal leaves a key as it was, but for the start of a block; and a block is the
// same for whoever keeps knocking and whoever waits.
func TestRefusalsChangeNothing(t *testing.T) {
	refused := 0
	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		rule := randomRule(rng)
		s, now := wander(rng, &rule)
		after := s
		a := rule.Take(&after, 1+rng.Int64N(rule.Quota+1), now)
		if a.Allowed {
			continue
		}
		refused++
		if after.Block != s.Block {
			require.Positive(t, rule.Block)
			require.LessOrEqual(t, s.Block, now, "a block that is on is not prolonged")
			require.Equal(t, now+a.Retry, after.Block)
			require.GreaterOrEqual(t, a.Retry, rule.Block)
			block := after.Block
			rule.Take(&after, 1, now+rng.Int64N(a.Retry))
			require.Equal(t, block, after.Block)
		}
		after.Block = s.Block
		require.Equal(t, s, after)
	}
	require.Greater(t, refused, 1000)
}

// Who waits as he was told gets in, though whole milliseconds are told; one microsecond
// before what is behind them he does not.
func TestWaitingAsTold(t *testing.T) {
	waited := 0
	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 8))
		rule := randomRule(rng)
		s, now := wander(rng, &rule)
		cost := 1 + rng.Int64N(rule.Quota)
		a := rule.Take(&s, cost, now)
		if a.Allowed {
			continue
		}
		waited++
		require.Positive(t, a.Retry)
		early, told := s, s
		require.False(t, rule.Take(&early, cost, now+a.Retry-1).Allowed, "seed %d: %+v of %+v", seed, rule, s)
		wait := int64(a.Decision(stores.Local).RetryAfter / time.Microsecond)
		require.GreaterOrEqual(t, wait, a.Retry)
		require.Less(t, wait, a.Retry+1000)
		require.True(t, rule.Take(&told, cost, now+wait).Allowed, "seed %d: %+v of %+v", seed, rule, s)
	}
	require.Greater(t, waited, 1000)
}

// By the time of Reset the whole quota is there, at once.
func TestResetIsTheWholeQuota(t *testing.T) {
	for seed := range uint64(20_000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		rule := randomRule(rng)
		s, now := wander(rng, &rule)
		a := rule.Peek(s, 1+rng.Int64N(rule.Quota+1), now)
		require.Zero(t, rule.Used(s, now+a.Reset), "seed %d: %+v of %+v", seed, rule, s)
		require.True(t, rule.Take(&s, rule.Quota, now+a.Reset).Allowed, "seed %d: %+v of %+v", seed, rule, s)
	}
}

// The largest limits that are valid stay within 64 bits: nothing turns negative, and
// a second hit of the whole quota waits.
func TestLargestLimits(t *testing.T) {
	const decade = 10 * 365 * 24 * time.Hour
	for _, limit := range []stores.Limit{
		stores.FixedWindow(1<<53-1, decade),
		stores.SlidingWindow((1<<53-1)/int(decade/time.Millisecond), decade),
		stores.SlidingWindow(1<<53-1, time.Millisecond),
		stores.SlidingWindow((1<<53-1)/2, 2*time.Millisecond),
		stores.TokenBucket(int(decade/time.Microsecond), decade),
		stores.TokenBucket(int(decade/time.Microsecond)/2+1, decade),
		stores.TokenBucket(1, decade),
		stores.LeakyBucket(1000, time.Millisecond),
		stores.SlidingLog(1<<53-1, decade),
	} {
		for _, block := range []time.Duration{0, time.Millisecond, decade} {
			limit := limit.BlockFor(block)
			require.NoError(t, limit.Validate())
			rule := Of(limit)
			for _, start := range []int64{0, 1 << 40, 1 << 52} {
				var s State
				require.True(t, rule.Take(&s, rule.Quota, start).Allowed, limit.String())
				require.Equal(t, rule.Quota, rule.Used(s, start))
				for _, later := range []int64{0, 1, rule.Window / 2, rule.Window - 1, rule.Window, rule.Window + 1} {
					then := s
					a := rule.Take(&then, rule.Quota, start+later)
					require.GreaterOrEqual(t, a.Retry, int64(0), limit.String())
					require.GreaterOrEqual(t, a.Reset, a.Retry, limit.String())
					require.LessOrEqual(t, a.Retry, max(3*rule.Window, rule.Block), limit.String())
					require.Equal(t, a.Allowed, a.Retry == 0)
					if later < rule.Window-1 {
						require.False(t, a.Allowed, limit.String())
					}
					rule.Refund(&then, rule.Quota, start+later)
					rule.Pay(&then, rule.Quota, rule.Window, start+later)
					require.LessOrEqual(t, rule.Used(then, start+later), rule.Quota, limit.String())
				}
			}
		}
	}
}

// Parts of a microsecond are rounded up, and what fits into a bucket is exact.
func TestOf(t *testing.T) {
	tests := []struct {
		limit stores.Limit
		want  Rule
	}{
		{stores.FixedWindow(5, time.Second+1), Rule{Quota: 5, Window: 1_000_001}},
		{stores.SlidingWindow(5, time.Second).BlockFor(time.Minute - 1), Rule{Algorithm: stores.Sliding, Quota: 5, Window: 1_000_000, Block: 60_000_000}},
		{stores.TokenBucket(3, time.Second), Rule{Algorithm: stores.Token, Quota: 3, Window: 1_000_000, Emission: 333_334, Burst: 1_000_002}},
		{stores.LeakyBucket(4, time.Second), Rule{Algorithm: stores.Leaky, Quota: 4, Window: 1_000_000, Emission: 250_000, Burst: 1_000_000}},
	}
	for _, test := range tests {
		require.Equal(t, test.want, Of(test.limit))
	}
	limit := stores.TokenBucket(20, time.Minute)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = Of(limit) }))
}

// A window's end that a clock far ahead of this one has set makes nobody wait for more
// than the window, and lets an old window count no more than whole.
func TestEndSetByAnotherClock(t *testing.T) {
	const now, ahead = 1_000_000, 50_000_000
	rule := Of(stores.FixedWindow(5, time.Second))
	s := State{End: now + ahead, N: 5}
	a := rule.Take(&s, 1, now)
	require.Equal(t, Answer{Retry: rule.Window, Reset: rule.Window}, a)

	rule = Of(stores.SlidingWindow(5, time.Second))
	s = State{End: now + ahead, N: 1, P: 3}
	require.Equal(t, int64(4), rule.Used(s, now))
	require.Equal(t, Answer{Allowed: true, Reset: 2 * rule.Window}, rule.Take(&s, 1, now))
}
