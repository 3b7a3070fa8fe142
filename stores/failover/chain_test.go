package failover

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

// chained is a shared store that takes several hits in one call, all or, when it
// fails, as many as told.
type chained struct {
	*fake
	fails  func(call int, hits []stores.Hit) (n int, err error) // n are counted, and the rest as err says
	lost   bool                                                 // all are counted, and the answer is lost
	chains [][]string                                           // the keys of each call
}

func (f *chained) TakeChain(ctx context.Context, hits []stores.Hit, open []bool, owed []int, until []time.Duration, out []stores.Decision, certain []bool) (int, error) {
	var keys []string
	for _, h := range hits {
		keys = append(keys, h.Key)
	}
	f.chains = append(f.chains, keys)
	most, failure := len(hits), error(nil)
	if f.fails != nil {
		most, failure = f.fails(len(f.chains), hits)
	}
	for i := range hits[:most] {
		var d stores.Decision
		var err error
		if owed != nil && owed[i] > 0 {
			f.paid += owed[i]
			d, err = f.mem.TakeOwing(ctx, hits[i], owed[i], until[i])
		} else {
			d, err = f.mem.Take(ctx, hits[i])
		}
		if err != nil {
			return i, err
		}
		f.applied++
		if f.lost {
			continue
		}
		out[i], certain[i] = d, true
		if !d.Allowed && (open == nil || !open[i]) {
			return i + 1, nil
		}
	}
	if f.lost {
		return 0, &fault.Error{Kind: stores.ErrUnavailable, Text: "cut"}
	}
	return most, failure
}

func newChained(t testing.TB) (*Store, *chained) {
	f := &chained{fake: newFake(t)}
	s, err := New(f, Config{Logger: newRig(t, Config{}).cfg.Logger})
	require.NoError(t, err)
	return s, f
}

func hitsOn(limit stores.Limit, keys ...string) []stores.Hit {
	var hits []stores.Hit
	for _, k := range keys {
		hits = append(hits, stores.Hit{Key: k, Limit: limit})
	}
	return hits
}

func sources(out []stores.Decision) string {
	var all []string
	for _, d := range out {
		word := d.Source.String()
		if !d.Allowed {
			word += " refused"
		}
		all = append(all, word)
	}
	return fmt.Sprint(all)
}

func takeEach(t testing.TB, s *Store, hits []stores.Hit, open []bool) string {
	t.Helper()
	out := make([]stores.Decision, len(hits))
	n, err := s.TakeEach(t.Context(), hits, open, out)
	require.NoError(t, err)
	return sources(out[:n])
}

// Any number of policies costs one call.
func TestChainIsOneCall(t *testing.T) {
	s, f := newChained(t)
	hits := hitsOn(five, "a", "b", "c")
	for range 5 {
		require.Equal(t, "[shared shared shared]", takeEach(t, s, hits, nil))
	}
	require.Len(t, f.chains, 5)
	require.Equal(t, "[shared refused]", takeEach(t, s, hits, nil))
	require.Equal(t, "[remembered refused]", takeEach(t, s, hits, nil), "and none once one is known to refuse")
	require.Len(t, f.chains, 6)
	require.Zero(t, f.calls)
	require.Equal(t, uint64(16), s.Stats().Shared)
}

// What was behind a refusal is not charged, and what this instance noted of it on the
// way is taken back.
func TestChainBehindARefusal(t *testing.T) {
	s, f := newChained(t)
	one := stores.FixedWindow(1, time.Minute)
	hits := append(hitsOn(one, "mine"), hitsOn(five, "all")...)
	require.Equal(t, "[shared shared]", takeEach(t, s, hits, nil))
	s.refusals.drop(&hits[0])
	for range 20 {
		require.Equal(t, "[shared refused]", takeEach(t, s, hits, nil))
		s.refusals.drop(&hits[0])
	}
	f.failWith(errDown)
	f.fails = func(int, []stores.Hit) (int, error) { return 0, errDown }
	for i := range 5 {
		d, err := s.Take(t.Context(), hits[1])
		require.NoError(t, err)
		require.Equal(t, i < 4, d.Allowed, "four are left, and none is held as on its way")
	}
}

func TestOpenChainIsOneCall(t *testing.T) {
	s, f := newChained(t)
	hits := append(hitsOn(stores.FixedWindow(1, time.Minute), "signal"), hitsOn(five, "enforced")...)
	open := []bool{true, false}
	require.Equal(t, "[shared shared]", takeEach(t, s, hits, open))
	require.Equal(t, "[shared refused shared]", takeEach(t, s, hits, open))
	require.Equal(t, "[shared refused shared]", takeEach(t, s, hits, open), "an open one is never answered from memory")
	require.Len(t, f.chains, 3)
}

// When the store fails at any place of a chain each hit has one path, nothing is asked
// twice that may have been counted, and the quota holds.
func TestChainFails(t *testing.T) {
	cut := &fault.Error{Kind: stores.ErrUnavailable, Text: "cut"}
	for _, err := range []*fault.Error{errDown, cut, errOneKey} {
		for at := range 3 {
			t.Run(fmt.Sprintf("%s at %d", err.Text, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, f := newChained(t)
					hits := hitsOn(five, "a", "b", "c")
					f.fails = func(call int, hits []stores.Hit) (int, error) {
						if call == 1 {
							return at, err
						}
						return len(hits), nil
					}
					out := make([]stores.Decision, 3)
					n, failure := s.TakeAll(t.Context(), hits, out)
					require.NoError(t, failure)
					require.Equal(t, 3, n)
					for i, d := range out {
						require.True(t, d.Allowed)
						local := i >= at
						if err == errOneKey {
							local = i == at
						}
						require.Equal(t, local, d.Source == stores.Local, "hit %d: %s", i, d.Source)
						require.Equal(t, local, d.Fault != nil)
					}
					time.Sleep(openMost)
					for round := range 6 {
						for i := range hits {
							d, err := s.Take(t.Context(), hits[i])
							require.NoError(t, err)
							require.Equal(t, round < 4, d.Allowed, "hit %d: no one gets a sixth, and all get five", i)
						}
					}
				})
			})
		}
	}
}

// The whole chain was counted and the answer lost: it is decided here, and asked no
// second time.
func TestChainLost(t *testing.T) {
	s, f := newChained(t)
	f.lost = true
	hits := hitsOn(five, "a", "b", "c")
	require.Equal(t, "[local local local]", takeEach(t, s, hits, nil))
	require.Len(t, f.chains, 1)
	require.Zero(t, f.calls)
	require.Equal(t, 3, f.applied)
	require.Zero(t, s.Stats().Debts, "the store knows of them, or not: nobody tells it again")
}

// Debts go along, each with its own hit, and are paid once.
func TestChainPaysDebts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newChained(t)
		f.fails = func(int, []stores.Hit) (int, error) { return 0, errDown }
		hits := append(hitsOn(five, "a", "b"), hitsOn(stores.TokenBucket(5, time.Hour), "c")...)
		for range 2 {
			require.Equal(t, "[local local local]", takeEach(t, s, hits, nil))
		}
		require.Equal(t, 3, s.Stats().Debts)
		f.fails = nil
		out := make([]stores.Decision, 3)
		n, err := s.TakeAll(t.Context(), hits, out)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		require.Equal(t, 6, f.paid)
		require.Equal(t, []int{2, 2, 2}, []int{out[0].Remaining, out[1].Remaining, out[2].Remaining})
		require.Zero(t, s.Stats().Debts)
		require.Equal(t, "[shared shared shared]", takeEach(t, s, hits, nil))
		require.Equal(t, 6, f.paid)
	})
}

// A chain that has one key twice does not wait for itself.
func TestChainWithOneKeyTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newChained(t)
		hits := hitsOn(five, "a", "a", "a")
		f.fails = func(int, []stores.Hit) (int, error) { return 0, errDown }
		require.Equal(t, "[local local local]", takeEach(t, s, hits, nil))
		f.fails = nil
		start := time.Now()
		require.Equal(t, "[shared shared shared refused]", takeEach(t, s, hits, []bool{true, true, true}))
		require.Zero(t, time.Since(start))
		require.Equal(t, 3, f.paid)
	})
}

// A store that says it decided about more hits than there are, or about none, is one
// that fails.
func TestChainMiscounted(t *testing.T) {
	for _, n := range []int{-1, 0, 4} {
		s, f := newChained(t)
		s.chain = miscounting{f, n}
		require.Equal(t, "[local local local]", takeEach(t, s, hitsOn(five, "a", "b", "c"), nil))
	}
}

type miscounting struct {
	*chained
	n int
}

func (m miscounting) TakeChain(context.Context, []stores.Hit, []bool, []int, []time.Duration, []stores.Decision, []bool) (int, error) {
	return m.n, nil
}

// What a store can't take in one call it is asked about hit by hit.
func TestChainUnsupported(t *testing.T) {
	s, f := newChained(t)
	f.fails = func(int, []stores.Hit) (int, error) {
		return 0, fmt.Errorf("chains: %w", errors.ErrUnsupported)
	}
	require.Equal(t, "[shared shared shared]", takeEach(t, s, hitsOn(five, "a", "b", "c"), nil))
	require.Equal(t, 3, f.applied)
}

// Any Batcher of a stranger's is asked once, unless a debt has to go along.
type batcher struct {
	*fake
	batches int
}

func (b *batcher) TakeAll(ctx context.Context, hits []stores.Hit, out []stores.Decision) (int, error) {
	b.batches++
	return b.mem.TakeAll(ctx, hits, out)
}

func TestStrangersBatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &batcher{fake: newFake(t)}
		s, err := New(b, Config{})
		require.NoError(t, err)
		hits := hitsOn(five, "a", "b", "c")
		require.Equal(t, "[shared shared shared]", takeEach(t, s, hits, nil))
		require.Equal(t, 1, b.batches)
		require.Zero(t, b.calls)
		require.Equal(t, "[shared shared shared]", takeEach(t, s, hits, []bool{true, true, true}))
		require.Equal(t, 1, b.batches, "it would stop at a refusal")
		b.failWith(errDown)
		_, err = s.Take(t.Context(), hits[1])
		require.NoError(t, err)
		b.failWith(nil)
		require.Equal(t, "[shared shared shared]", takeEach(t, s, hits, nil))
		require.Equal(t, 1, b.paid)
		require.Equal(t, 1, b.batches)
		for range 10 {
			takeEach(t, s, hits, nil)
		}
		require.Equal(t, uint64(1), s.Stats().Local)
	})
}
