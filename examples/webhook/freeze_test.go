//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/dynamotest"
	"github.com/sallyport/sallyport/internal/upstashtest"
)

// throughLine are the two stores, each at the far end of a line.
var throughLine = map[string]func(t *testing.T) (*line, []string){
	"upstash": func(t *testing.T) (*line, []string) {
		store := upstashtest.New(t)
		l, through := newLine(t, store.URL)
		env := upstashEnv(store)
		env[0] = "UPSTASH_REDIS_REST_URL=" + through
		return l, env
	},
	"dynamodb": func(t *testing.T) (*line, []string) {
		l, through := newLine(t, dynamotest.New(t).Listen(t))
		return l, dynamoEnv(through)
	},
}

// idleTime is for how long the stores' clients keep an idle connection, and a little.
const idleTime = 5*time.Second + 200*time.Millisecond

// The connections end while the function is frozen, so that each invocation begins
// with a dead one. That is no outage, costs nobody an answer, and counts nothing twice:
// another instance finds in the store just what this one has let through.
//
// What meets the dead connection is the busy mark, which may be asked for again: the
// count of the limit, which may not, then has a live one.
func TestFrozenBetweenInvocations(t *testing.T) {
	manners := map[string]struct {
		invocations int
		frozen      func(l *line)
	}{
		"closed": {6, (*line).cut},
		// No gateway forgets a connection within seconds. The time has to be real: the
		// process that is frozen has no other.
		"dropped": {2, func(l *line) {
			l.drop()
			time.Sleep(idleTime)
		}},
	}
	for store, open := range throughLine {
		for manner, m := range manners {
			t.Run(store+" "+manner, func(t *testing.T) {
				t.Parallel()
				l, env := open(t)
				env = append(env, "SALLYPORT_LIMIT=7/1h")
				f, other := start(t, env...), start(t, env...)
				f.frozen = func() { m.frozen(l) }
				require.Equal(t, map[int]int{200: m.invocations}, flood(t, m.invocations, "203.0.113.1", f))
				rest := flood(t, 12, "203.0.113.1", other)[200]
				require.Equal(t, 7-m.invocations, rest)
				require.GreaterOrEqual(t, l.opened(), m.invocations, "each connection was another")
				requireKept(t, 7, f, other)
				f.frozen = nil
				require.Positive(t, flood(t, 12, "203.0.113.1", f)[429])
				require.Equal(t, map[int]int{200: 1}, flood(t, 1, "203.0.113.2", f))
				require.NotContains(t, f.log.String(), "the shared store fails")
			})
		}
	}
}

// A connection that is dropped within those seconds costs one question its deadline, and
// it is asked again: no error, no hit more than the limit, and no open breaker as long as
// other calls go well.
func TestDroppedWhileInUse(t *testing.T) {
	for store, open := range throughLine {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			l, env := open(t)
			f := start(t, append(env, "SALLYPORT_LIMIT=7/1h")...)
			n := 0
			f.frozen = func() {
				if n++; n%2 == 0 {
					l.drop()
				}
			}
			require.Equal(t, map[int]int{200: 7, 429: 5}, flood(t, 12, "203.0.113.1", f))
			require.Equal(t, map[int]int{200: 1}, flood(t, 1, "203.0.113.2", f))
			require.NotContains(t, f.log.String(), "the shared store fails")
		})
	}
}
