package dynamo

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

const (
	maxExpression = 4096
	maxOperators  = 300
)

var (
	expressionWord     = regexp.MustCompile(`[#:]?[A-Za-z_][A-Za-z_0-9]*`)
	expressionOperator = regexp.MustCompile(`<=|>=|[=<>,+-]|AND|OR|attribute_not_exists|attribute_exists`)
	expressionKeywords = map[string]bool{"SET": true, "ADD": true, "AND": true, "OR": true, "attribute_not_exists": true, "attribute_exists": true}
	knownAttribute     = regexp.MustCompile(`^([nepxtqb]|s(0|[1-9][0-9]?))$`)
)

// lint holds a call against the service's rules, of which engines check some only: at
// most 4,096 bytes and 300 operators, no unused or undefined names and values, no
// bare reserved words, no attribute written twice.
func lint(t *testing.T, what string, c *call) {
	t.Helper()
	used := make(map[string]bool)
	for _, text := range []string{c.update, c.condition} {
		require.NotEmpty(t, text, what)
		require.LessOrEqual(t, len(text), maxExpression, what)
		require.LessOrEqual(t, len(expressionOperator.FindAllString(text, -1)), maxOperators, "%s: %s", what, text)
		require.Equal(t, strings.Count(text, "("), strings.Count(text, ")"), what)
		for _, word := range expressionWord.FindAllString(text, -1) {
			used[word] = true
			if !strings.ContainsAny(word[:1], "#:") {
				require.True(t, expressionKeywords[word], "%s: a bare %q", what, word)
			}
		}
	}
	for alias, attribute := range c.names {
		require.True(t, used[alias], "%s: unused %s", what, alias)
		require.Regexp(t, knownAttribute, attribute, what)
	}
	for value := range c.bound {
		require.True(t, used[value], "%s: unused %s", what, value)
	}
	for word := range used {
		switch word[0] {
		case '#':
			require.Contains(t, c.names, word, "%s: undefined", what)
		case ':':
			require.Contains(t, c.bound, word, "%s: undefined", what)
		}
	}
	written := make(map[string]bool)
	for _, target := range regexp.MustCompile(`(#[a-z0-9]+) (=|:)`).FindAllStringSubmatch(c.update, -1) {
		require.False(t, written[target[1]], "%s: %s is written twice", what, target[1])
		written[target[1]] = true
	}
	require.NotContains(t, c.update, "REMOVE", "not every engine heeds it")
}

// Every call that can be made: for each algorithm over many states, with and without a
// payment, a block, a guess; and those that give back, mend and begin a block.
func TestExpressions(t *testing.T) {
	const now = 1_800_000_000_000_000
	branches := make(map[string]bool)
	check := func(what string, c *call) {
		if c == nil || branches[c.update+" IF "+c.condition] {
			return
		}
		lint(t, what, c)
		branches[c.update+" IF "+c.condition] = true
	}
	for _, base := range everyLimit(100, time.Minute) {
		for _, block := range []time.Duration{0, time.Hour} {
			for _, quota := range []int{100, 2} {
				limit := base
				limit.Quota, limit.Block = quota, block
				for _, cost := range []int{1, quota, quota + 1} {
					for _, owed := range []int64{0, 1, int64(quota)} {
						tk := newTaking(nil, stores.Hit{Key: "k", Limit: limit, Cost: max(1, cost)})
						if tk.owed = owed; owed > 0 {
							tk.until = tk.rule.Window / 2
						}
						now := int64(now) / (tk.unit.Microseconds())
						for i, s := range lintStates(tk, now) {
							if RaceDetector && i%3 > 0 {
								continue
							}
							what := fmt.Sprintf("%v cost %d owed %d state %d", limit, cost, owed, i)
							if s.guessed {
								s.Block = 0
								if owed == 0 && cost > quota {
									continue // refused without a call
								}
								require.NotNil(t, tk.write(s, now), what)
							}
							check(what, tk.write(s, now))
							if s.guessed {
								continue
							}
							check(what, tk.mend(s, now))
							back := *tk
							back.cost = min(back.cost, back.rule.Quota)
							check(what, back.giveBack(s, now, 0))
							check(what, back.giveBack(nil, now, 0))
							check(what, tk.starter().bind(nil))
						}
					}
				}
			}
		}
	}
	t.Logf("%d different calls", len(branches))
	for name, c := range map[string]*claim{
		"count": &count, "pay": &pay, "fill": &fill, "open": &open,
		"slideCount": &slideCount, "slidePay": &slidePay, "slideFill": &slideFill, "roll": &roll, "rollPaying": &rollPaying, "begin": &begin,
		"pour": &pour, "pourPay": &pourPay, "pourFull": &pourFull, "start": &start,
	} {
		for g, e := range c {
			if (name == "count" || name == "slideCount" || name == "roll" || name == "pour") && guard(g) == held {
				continue // no hit is counted in a block
			}
			require.True(t, branches[e.update+" IF "+e.condition], "%s under guard %d was not met", name, g)
		}
	}
	for _, e := range []*expression{&begun, &begunAsT, &begunAsQ, &uncount, &empty, &cut, &unslide, &unroll, &unpour, &emptyPour, &cutPour, &look} {
		require.True(t, branches[e.update+" IF "+e.condition], "%s was not met", e.condition)
	}
}

// lintStates are states of every kind: new, open, full, over the quota, over, far ahead.
func lintStates(t *taking, now int64) []*state {
	states := []*state{{}, {guessed: true}}
	older, blocks := []int64{0}, []int64{0}
	if t.rule.Algorithm == stores.Sliding {
		older = []int64{0, 1, t.rule.Quota + 1}
	}
	far := t.longest() + 2*t.lead()
	if t.rule.Block > 0 {
		blocks = []int64{0, now + 5, now + 2*t.rule.Block + far}
	}
	for _, end := range []int64{now - 3*t.rule.Window, now - t.rule.Window/2, now + 1, now + t.rule.Window/2, now + t.rule.Burst, now + t.rule.Burst + 1, now + far} {
		for _, n := range []int64{0, 1, t.rule.Quota / 2, t.rule.Quota, t.rule.Quota + 1} {
			for _, p := range older {
				for _, block := range blocks {
					for _, guessed := range []bool{false, true} {
						states = append(states, &state{State: meter.State{End: end, N: n, P: p, Block: block}, there: true, guessed: guessed})
					}
				}
			}
		}
	}
	for i, s := range states {
		s.slots = new([maxLog]int64)
		if t.rule.Algorithm == stores.Log && s.there {
			s.top = int64(1 + i%maxLog)
			for slot := range s.slots {
				s.slots[slot] = []int64{0, longOver, now - 5, now + far}[(i+slot*slot)%4*min(1, (i+slot)%(2+i%7))]
			}
		}
	}
	return states
}

func everyLimit(quota int, window time.Duration) []stores.Limit {
	return []stores.Limit{
		stores.FixedWindow(quota, window), stores.SlidingWindow(quota, window), stores.SlidingLog(quota, window),
		stores.TokenBucket(quota, window), stores.LeakyBucket(quota, window),
	}
}

// The longest that a log can need: a hundred slots that nobody has seen, or that
// somebody has.
func TestLongestExpressions(t *testing.T) {
	for _, block := range []time.Duration{0, time.Hour} {
		tk := newTaking(nil, stores.Hit{Key: "k", Limit: stores.SlidingLog(100, time.Minute).BlockFor(block), Cost: 100})
		for name, s := range map[string]*state{
			"guessed": {guessed: true, slots: new([maxLog]int64)},
			"new":     {slots: new([maxLog]int64)},
			"over":    {there: true, top: 100, slots: new([maxLog]int64)},
		} {
			if name == "over" {
				for i := range s.slots {
					s.slots[i] = longOver
				}
			}
			for cost := range int64(100) {
				tk.cost = cost + 1
				c := tk.write(s, 1_800_000_000_000_000)
				require.Len(t, c.slots, int(cost)+1)
				lint(t, name, c)
			}
		}
	}
}

// Every request shows the whole item in both answers, or a refusal would need a read.
func TestInputShowsTheItem(t *testing.T) {
	in := (&Store{table: "limits"}).input("k", look.bind(nil))
	require.Equal(t, "ALL_NEW", string(in.ReturnValues))
	require.Equal(t, "ALL_OLD", string(in.ReturnValuesOnConditionCheckFailure))
	require.Equal(t, "limits", *in.TableName)
	require.NoError(t, (*Store)(nil).Supports(stores.FixedWindow(1, 1e9)))
}
