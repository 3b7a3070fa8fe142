package upstash_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
)

// TestScriptFaultMatrix is TestFaultMatrix for what goes by the script: a cost, a debt
// and a refund. Whatever happens there is one write at most, and what is called definite
// was not written.
func TestScriptFaultMatrix(t *testing.T) {
	lie, reply := upstashtest.Lie, upstashtest.Reply
	result := func(r string) upstashtest.Fault { return lie(`[{"result":` + r + `}]`) }
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
		{"two numbers", result(`[1,2]`), unavailable},
		{"four numbers", result(`[1,2,60000,0]`), unavailable},
		{"null", result(`null`), unavailable},
		{"nulls", result(`[null,null,null]`), unavailable},
		{"text", result(`"OK"`), unavailable},
		{"numbers as text", result(`["1","2","60000"]`), unavailable},
		{"one as text", result(`[1,2,"60000"]`), unavailable},
		{"fractions", result(`[1.0,2.0,60000.0]`), unavailable},
		{"exponents", result(`[1e0,2,60000]`), unavailable},
		{"over int64", result(`[1,9223372036854775808,60000]`), unavailable},
		{"booleans", result(`[true,2,60000]`), unavailable},
		{"nested", result(`[[1,2,60000]]`), unavailable},
		{"an object", result(`{"1":1}`), unavailable},
		{"allowed 2", result(`[2,2,60000]`), unavailable},
		{"allowed -1", result(`[-1,2,60000]`), unavailable},
		{"level negative", result(`[1,-2,60000]`), unavailable},
		{"level above the quota", result(`[1,6,60000]`), unavailable},
		{"window -3", result(`[1,2,-3]`), unavailable},
		{"two slots", lie(`[{"result":[1,2,60000]},{"result":1}]`), unavailable},
		{"no slot", lie(`[]`), unavailable},
		{"slot alone", lie(`{"result":[1,2,60000]}`), unavailable},
		{"result and error", lie(`[{"result":[1,2,60000],"error":"ERR"}]`), unavailable},
		{"truncated", lie(`[{"result":[1,2,600`), unavailable},
		{"garbage behind", lie(`[{"result":[1,2,60000]}]]`), unavailable},
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
		{"does not compile", failed("ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'"), rejectedScript},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for name, call := range map[string]func(context.Context, stores.Store) (stores.Decision, error){
				"cost": func(ctx context.Context, s stores.Store) (stores.Decision, error) {
					return s.Take(ctx, costing(five, 2))
				},
				"debt": func(ctx context.Context, s stores.Store) (stores.Decision, error) {
					return s.(stores.Debtor).TakeOwing(ctx, costing(five, 2), 3, time.Second)
				},
				"refund": func(ctx context.Context, s stores.Store) (stores.Decision, error) {
					return stores.Decision{Allowed: true}, s.(stores.Refunder).Refund(ctx, costing(five, 2))
				},
			} {
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
