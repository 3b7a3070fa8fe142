package upstash_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
)

// scriptedCalls is what goes by the script and writes.
func scriptedCalls() map[string]func(context.Context, stores.Store) (stores.Decision, error) {
	take := func(limit stores.Limit) func(context.Context, stores.Store) (stores.Decision, error) {
		return func(ctx context.Context, s stores.Store) (stores.Decision, error) {
			return s.Take(ctx, stores.Hit{Key: secretKey, Limit: limit, Cost: 2})
		}
	}
	return map[string]func(context.Context, stores.Store) (stores.Decision, error){
		"cost":    take(five.Limit),
		"sliding": take(stores.SlidingWindow(5, time.Minute)),
		"token":   take(stores.TokenBucket(5, time.Minute)),
		"log":     take(stores.SlidingLog(5, time.Minute).BlockFor(time.Minute)),
		"debt": func(ctx context.Context, s stores.Store) (stores.Decision, error) {
			return s.(stores.Debtor).TakeOwing(ctx, costing(five, 2), 3, time.Second)
		},
		"refund": func(ctx context.Context, s stores.Store) (stores.Decision, error) {
			err := s.(stores.Refunder).Refund(ctx, costing(five, 2))
			return stores.Decision{Allowed: err == nil}, err
		},
	}
}

// TestScriptFaultMatrix is TestFaultMatrix for what goes by the script: costs, other
// algorithms, a debt and a refund. Whatever happens there is one write at most, and what is called definite
// was not written.
func TestScriptFaultMatrix(t *testing.T) {
	lie, reply := upstashtest.Lie, upstashtest.Reply
	result := func(r string) upstashtest.Fault { return lie(`[{"result":` + r + `}]`) }
	at := func(text string) upstashtest.Fault { return reply(200, "application/json", `[{"result":[`+text+`]}]`) }
	failed := func(text string) upstashtest.Fault {
		return reply(200, "application/json", `[{"error":`+jsonString(text)+`}]`)
	}
	rejectedScript := kind{of: stores.ErrMisconfigured, definite: true, lasting: true, keyOnly: true}
	silent := map[string]bool{"work, then hang": true, "header, then hang": true}
	cases := []struct {
		name string
		f    upstashtest.Fault
		want kind
	}{
		{"good", upstashtest.Good(), counted},
		{"HTTP/1.0 close", upstashtest.HTTP10(), counted},
		{"close", upstashtest.Close(), unavailable},
		{"work, then close", upstashtest.Lost(upstashtest.Close()), unavailable},
		{"work, then reset", upstashtest.Lost(upstashtest.Reset()), unavailable},
		{"work, then hang", upstashtest.Lost(upstashtest.Hang()), unavailable},
		{"header, then hang", upstashtest.HeaderThenHang(), unavailable},
		{"half of the body, then close", upstashtest.HalfBody(upstashtest.Close()), unavailable},
		{"work, then 502", upstashtest.Lost(reply(502, "text/html", "<title>Bad Gateway</title>")), unavailable},

		{"no numbers", result(`[]`), unavailable},
		{"one number", result(`1`), unavailable},
		{"four numbers", result(`[1,2,60000,0]`), unavailable},
		{"six numbers", result(`[1,2,60000,0,0,0]`), unavailable},
		{"another hit's, too", result(`[1,2,0,0,0,1,2,0,0,0]`), unavailable},
		{"a text behind all", result(`[1,2,0,0,0,"ERR"]`), unavailable},
		{"a text in between", result(`[1,2,"ERR",0,0]`), unavailable},
		{"no text", result(`[""]`), unavailable},
		{"null", result(`null`), unavailable},
		{"nulls", result(`[null,null,null,null,null]`), unavailable},
		{"null at the end", result(`[1,2,0,0,null]`), unavailable},
		{"text", result(`"OK"`), unavailable},
		{"numbers as text", result(`["1","2","0","0","0"]`), unavailable},
		{"one as text", result(`[1,2,0,0,"0"]`), unavailable},
		{"fractions", result(`[1.0,2.0,0.0,0.0,0.0]`), unavailable},
		{"exponents", result(`[1e0,2,0,0,0]`), unavailable},
		{"over int64", result(`[1,2,0,9223372036854775808,0]`), unavailable},
		{"2^53+1", result(`[1,2,9007199254740993,9007199254740993,0]`), unavailable},
		{"2^53+1 at the end", result(`[1,2,0,0,9007199254740993]`), unavailable},
		{"booleans", result(`[true,2,0,0,0]`), unavailable},
		{"nested", result(`[[1,2,0,0,0]]`), unavailable},
		{"an object", result(`{"1":1}`), unavailable},
		{"allowed 2", result(`[2,2,0,0,0]`), unavailable},
		{"allowed -1", result(`[-1,2,0,0,0]`), unavailable},
		{"level negative", result(`[1,-2,0,0,0]`), unavailable},
		{"level above the quota", result(`[1,6,0,0,0]`), unavailable},
		{"refused with room", result(`[0,3,60000,60000,0]`), unavailable},
		{"time -3", result(`[1,2,-3,0,0]`), unavailable},
		{"time negative", result(`[1,2,0,-1,0]`), unavailable},
		{"wait negative", result(`[1,2,0,0,-1]`), unavailable},
		{"two slots", lie(`[{"result":[1,2,60000,0,0]},{"result":1}]`), unavailable},
		{"no slot", lie(`[]`), unavailable},
		{"slot alone", lie(`{"result":[1,2,60000,0,0]}`), unavailable},
		{"result and error", lie(`[{"result":[1,2,60000,0,0],"error":"ERR"}]`), unavailable},
		{"truncated", lie(`[{"result":[1,2,600`), unavailable},
		{"garbage behind", lie(`[{"result":[1,2,60000,0,0]}]]`), unavailable},
		{"HTML", lie("<title>Bad Gateway</title>"), unavailable},

		{"quota", failed(quota), exhausted},
		{"WRONGPASS", failed("WRONGPASS invalid or missing auth token"), configured},
		{"401", object(401, "WRONGPASS invalid or missing auth token"), configured},
		{"NOPERM", failed("NOPERM this user has no permissions to run the 'evalsha' command" + echoed), rejectedScript},
		{"READONLY", failed("READONLY You can't write against a read only replica. script: 12, on @user_script:9."), refusing},
		{"OOM", failed("OOM command not allowed when used memory > 'maxmemory'. script: 12, on @user_script:9."), throttled},
		{"BUSY", failed("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."), refusing},
		{"WRONGTYPE", failed("WRONGTYPE Operation against a key holding the wrong kind of value"), ofKey},
		{"no number", failed("ERR value is not an integer or out of range"), ofKey},
		{"unknown", failed("ERR " + secretKey), refusing},
		{"the script took too long", failed("ERR script execution timeout exceeded"), unavailable},
		{"at the hit: READONLY", at(`"READONLY You can't write against a read only replica."`), refusing},
		{"at the hit: OOM", at(`"OOM command not allowed when used memory > 'maxmemory'."`), throttled},
		{"at the hit: WRONGTYPE", at(`"WRONGTYPE Operation against a key holding the wrong kind of value"`), ofKey},
		{"at the hit: no state", at(`"ERR value is not an integer or out of range"`), ofKey},
		{"at the hit: no right", at(`"NOPERM this user has no permissions to run the 'time' command"`), rejectedScript},
		{"at the hit: unknown", at(`"ERR ` + secretKey + `"`), refusing},
		{"at the hit: timeout", at(`"ERR upstream timed out"`), unavailable},
		{"does not compile", failed("ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'"), rejectedScript},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for name, call := range scriptedCalls() {
				var log journal
				srv := upstashtest.NewScripted(t, tc.f)
				limit := 30 * time.Second
				if silent[tc.name] {
					limit = 2 * time.Second
				}
				s := open(t, srv.URL, timeout(limit), logTo(&log))
				d, err := call(t.Context(), s)
				tc.want.check(t, err)
				require.Equal(t, tc.want == counted, err == nil && d.Allowed, name)
				if err != nil {
					require.Zero(t, d, name)
				}
				require.Len(t, srv.Requests(), 1, "no second attempt")
				require.LessOrEqual(t, srv.Applied(""), 1)
				if tc.want.definite {
					require.Zero(t, srv.Applied(""), name)
				}
				srv.Script(upstashtest.Good())
				_, err = call(t.Context(), open(t, srv.URL))
				require.NoError(t, err, "the server works again")
				noSecret(t, log.String())
			}
		})
	}
}
