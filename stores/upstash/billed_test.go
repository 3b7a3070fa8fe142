package upstash_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/upstash"
)

// billing tells what a step had a redis-server execute.
type billing struct {
	name string
	step func()
	want []string
}

// check asks redis-server itself what was called.
func (b billing) check(t *testing.T, srv *upstashtest.Server) {
	t.Helper()
	_, err := srv.Do("CONFIG", "RESETSTAT")
	require.NoError(t, err)
	b.step()
	info, err := srv.Do("INFO", "commandstats")
	require.NoError(t, err)
	var got []string
	for line := range strings.Lines(info.(string)) {
		var name string
		var calls int
		line = strings.NewReplacer("cmdstat_", "", ":calls=", " ", ",", " ").Replace(line)
		if n, _ := fmt.Sscan(line, &name, &calls); n == 2 && !strings.HasPrefix(name, "config") {
			got = append(got, slices.Repeat([]string{name}, calls)...)
		}
	}
	slices.Sort(got)
	require.Equal(t, b.want, got, "%s:\n%s", b.name, info)
}

// TestCounterIsBilledOnRealRedis: what the script costs on a plain counter.
func TestCounterIsBilledOnRealRedis(t *testing.T) {
	srv := upstashtest.NewReal(t)
	s := open(t, srv.URL)
	limit := stores.FixedWindow(5, time.Hour)
	hit := func(cost int) stores.Hit { return stores.Hit{Key: "k", Limit: limit, Cost: cost} }
	do := func(err error) { require.NoError(t, err) }
	take := func(cost int) { _, err := s.Take(t.Context(), hit(cost)); do(err) }
	owe := func(cost, owed int) { _, err := s.TakeOwing(t.Context(), hit(cost), owed, time.Minute); do(err) }
	take(2) // which brings the script along
	do(s.Reset(t.Context(), hit(1)))
	for _, b := range []billing{
		{"opens", func() { take(2) }, []string{"evalsha", "get", "set"}},
		{"further", func() { take(2) }, []string{"evalsha", "get", "pttl", "set"}},
		{"refused", func() { take(2) }, []string{"evalsha", "get", "pttl"}},
		{"cost above the quota", func() { take(6) }, nil},
		{"refund", func() { do(s.Refund(t.Context(), hit(5))) }, []string{"evalsha", "get", "pttl", "set"}},
		{"refund of nothing", func() { do(s.Refund(t.Context(), hit(5))) }, []string{"evalsha", "get", "pttl"}},
		{"debt", func() { owe(1, 1) }, []string{"evalsha", "get", "pttl", "set"}},
		{"debt, refused", func() { owe(3, 1) }, []string{"evalsha", "get", "pttl", "set"}},
		{"debt at the quota", func() { owe(1, 9); owe(1, 9) }, []string{"evalsha", "evalsha", "get", "get", "pttl", "pttl", "set"}},
		{"reset", func() { do(s.Reset(t.Context(), hit(1))) }, []string{"del"}},
		{"refund of no key", func() { do(s.Refund(t.Context(), hit(1))) }, []string{"evalsha", "get"}},
		{"debt opens", func() { owe(1, 1) }, []string{"evalsha", "get", "set"}},
		{"reset", func() { do(s.Reset(t.Context(), hit(1))) }, []string{"del"}},
		{"debt opens for a hit that never passes", func() { owe(6, 1) }, []string{"evalsha", "get", "set"}},
	} {
		b.check(t, srv)
	}
}

// TestAlgorithmsAreBilledOnRealRedis: what each of the others costs.
func TestAlgorithmsAreBilledOnRealRedis(t *testing.T) {
	srv := upstashtest.NewReal(t)
	s := open(t, srv.URL)
	do := func(err error) { require.NoError(t, err) }
	written, read := []string{"evalsha", "get", "set", "time"}, []string{"evalsha", "get", "time"}
	for _, limit := range others {
		t.Run(limit.String(), func(t *testing.T) {
			hit := stores.Hit{Key: limit.String(), Limit: limit, Cost: 2}
			take := func(allowed bool) func() {
				return func() {
					d, err := s.Take(t.Context(), hit)
					do(err)
					require.Equal(t, allowed, d.Allowed)
				}
			}
			take(true)() // which brings the script along
			do(s.Reset(t.Context(), hit))
			first := read
			if limit.Block > 0 {
				first = written // the block
			}
			full := read
			if limit.Algorithm == stores.Token || limit.Algorithm == stores.Leaky {
				full = written // something has drained since
			}
			for _, b := range []billing{
				{"cold", take(true), written},
				{"warm", take(true), written},
				{"refused", take(false), first},
				{"refused again", take(false), read},
				{"peek", func() { _, err := s.Peek(t.Context(), hit); do(err) }, read},
				{"refund", func() { do(s.Refund(t.Context(), hit)) }, written},
				{"reset", func() { do(s.Reset(t.Context(), hit)) }, []string{"del"}},
				{"refund of no key", func() { do(s.Refund(t.Context(), hit)) }, read},
				{"debt", func() { _, err := s.TakeOwing(t.Context(), hit, 1, time.Minute); do(err) }, written},
				{"debt above", func() { _, err := s.TakeOwing(t.Context(), hit, 5, time.Minute); do(err) }, written},
				{"debt at the quota", func() { _, err := s.TakeOwing(t.Context(), hit, 5, time.Minute); do(err) }, full},
			} {
				b.check(t, srv)
			}
		})
	}
}

// TestChainIsBilledOnRealRedis: one script and one look at the time for all.
func TestChainIsBilledOnRealRedis(t *testing.T) {
	srv := upstashtest.NewReal(t)
	s := open(t, srv.URL)
	hits := []stores.Hit{{Key: "a", Limit: stores.FixedWindow(2, time.Hour)}, {Key: "b", Limit: stores.FixedWindow(5, time.Hour)}}
	for _, limit := range others {
		hits = append(hits, stores.Hit{Key: limit.String(), Limit: limit})
	}
	take := func(s *upstash.Store, n int) func() {
		return func() {
			got, err := s.TakeAll(t.Context(), hits, make([]stores.Decision, len(hits)))
			require.NoError(t, err)
			require.Equal(t, n, got)
		}
	}
	take(s, len(hits))()
	for _, hit := range hits {
		require.NoError(t, s.Reset(t.Context(), hit))
	}
	all := func(more ...string) []string {
		for range others {
			more = append(more, "get", "set")
		}
		more = append(more, "evalsha", "time", "get", "set", "get", "set")
		slices.Sort(more)
		return more
	}
	for _, b := range []billing{
		{"cold", take(s, len(hits)), all()},
		{"warm", take(s, len(hits)), all("pttl", "pttl")},
		{"refused", take(s, 1), []string{"evalsha", "get", "pttl"}},
	} {
		b.check(t, srv)
	}
}
