package upstash_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
)

// kind is what an error must be.
type kind struct {
	of                         error
	definite, lasting, keyOnly bool
}

var (
	unavailable = kind{of: stores.ErrUnavailable}
	refusing    = kind{of: stores.ErrUnavailable, definite: true}
	configured  = kind{of: stores.ErrMisconfigured, definite: true, lasting: true}
	rejected    = kind{of: stores.ErrMisconfigured, definite: true}
	throttled   = kind{of: stores.ErrThrottled, definite: true}
	exhausted   = kind{of: stores.ErrThrottled, definite: true, lasting: true}
	ofKey       = kind{of: stores.ErrMisconfigured, definite: true, keyOnly: true}
	counted     = kind{} // no error: the hit was counted and allowed
)

func (k kind) check(t testing.TB, err error) {
	t.Helper()
	if k == counted {
		require.NoError(t, err)
		return
	}
	require.Error(t, err)
	require.ErrorIs(t, err, k.of)
	var f *fault.Error
	require.True(t, errors.As(err, &f), "%T", err)
	require.Equal(t, k, kind{f.Kind, f.Definite, f.Lasting, f.KeyOnly}, err.Error())
	for _, verb := range []string{"%v", "%+v", "%#v", "%q"} {
		noSecret(t, fmt.Sprintf(verb, err))
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		noSecret(t, e.Error())
	}
	if f.Cause != nil {
		noSecret(t, f.Cause.Error())
	}
	require.Less(t, len(err.Error()), 200)
	require.NotContains(t, err.Error(), "\n")
}

const (
	echoed = " '" + secretKey + "' " + upstashtest.DefaultToken + "\n\x1b[31m"
	quota  = "ERR max requests limit exceeded. Limit: 500000, Usage: 500000. See https://upstash.com/docs, command was:" + echoed
	daily  = "ERR max daily request limit exceeded. Limit: 10000, Usage: 10001." + echoed
)

// errorSlots refuses every command of a pipeline.
func errorSlots(text string) upstashtest.Fault {
	slot := `{"error":` + jsonString(text) + `}`
	return func(x *upstashtest.Exchange) bool {
		slots := strings.Repeat(slot+",", len(x.Commands)-1) + slot
		return upstashtest.Reply(200, "application/json", "["+slots+"]")(x)
	}
}

func jsonString(s string) string {
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\x1b", `\u001b`).Replace(s) + `"`
}

func object(code int, text string) upstashtest.Fault {
	return upstashtest.Reply(code, "application/json", `{"error":`+jsonString(text)+`}`)
}

// faultCase is one fault.
type faultCase struct {
	name string
	f    upstashtest.Fault
	want kind
}

// silentFaults are those of faultCases that cost a deadline.
var silentFaults = map[string]bool{
	"hang before the header": true, "work, then hang": true, "header, then hang": true, "half of the body, then hang": true,
	"trickle": true, "chunks without end": true, "answer after the deadline": true,
}

// faultCases is every fault that a server, a proxy or a network was seen to have, from the
// time when the request is on its way.
func faultCases() []faultCase {
	const page = "<!doctype html><title>Bad Gateway</title>" + upstashtest.DefaultToken
	lie, reply := upstashtest.Lie, upstashtest.Reply
	return []faultCase{
		{"good", upstashtest.Good(), counted},
		{"slow but in time", upstashtest.Late(50 * time.Millisecond), counted},
		{"HTTP/1.0 close", upstashtest.HTTP10(), counted},
		{"text/plain with good JSON", func(x *upstashtest.Exchange) bool { return reply(200, "text/plain", x.Apply())(x) }, counted},

		// Networks.
		{"hang before the header", upstashtest.Hang(), unavailable},
		{"work, then hang", upstashtest.Lost(upstashtest.Hang()), unavailable},
		{"header, then hang", upstashtest.HeaderThenHang(), unavailable},
		{"half of the body, then hang", upstashtest.HalfBody(upstashtest.Hang()), unavailable},
		{"trickle", upstashtest.Trickle(20 * time.Millisecond), unavailable},
		{"chunks without end", upstashtest.EndlessChunk(), unavailable},
		{"answer after the deadline", upstashtest.Late(time.Hour), unavailable},
		{"close", upstashtest.Close(), unavailable},
		{"work, then close", upstashtest.Lost(upstashtest.Close()), unavailable},
		{"reset", upstashtest.Reset(), unavailable},
		{"work, then reset", upstashtest.Lost(upstashtest.Reset()), unavailable},
		{"half of the body, then close", upstashtest.HalfBody(upstashtest.Close()), unavailable},
		{"half of the body, then reset", upstashtest.HalfBody(upstashtest.Reset()), unavailable},

		// Nonsense.
		{"200 empty", lie(""), unavailable},
		{"200 null", lie("null"), unavailable},
		{"200 {}", lie("{}"), unavailable},
		{"200 []", lie("[]"), unavailable},
		{"200 [{}]", lie("[{}]"), unavailable},
		{"one slot of three", lie(`[{"result":1}]`), unavailable},
		{"two slots of three", lie(`[{"result":1},{"result":1}]`), unavailable},
		{"four slots of three", lie(`[{"result":1},{"result":1},{"result":1},{"result":1}]`), unavailable},
		{"object instead of array", lie(`{"result":1}`), unavailable},
		{"object OK", lie(`{"result":"OK"}`), unavailable},
		{"object with an unknown error", lie(`{"error":"ERR ` + "whatever" + `"}`), unavailable},
		{"INCR null", lie(`[{"result":null},{"result":1},{"result":60000}]`), unavailable},
		{"INCR string", lie(`[{"result":"7"},{"result":1},{"result":60000}]`), unavailable},
		{"INCR fraction", lie(`[{"result":1.5},{"result":1},{"result":60000}]`), unavailable},
		{"INCR 1e400", lie(`[{"result":1e400},{"result":1},{"result":60000}]`), unavailable},
		{"INCR 0", lie(`[{"result":0},{"result":1},{"result":60000}]`), unavailable},
		{"INCR negative", lie(`[{"result":-3},{"result":1},{"result":60000}]`), unavailable},
		{"INCR over int64", lie(`[{"result":9223372036854775808},{"result":1},{"result":60000}]`), unavailable},
		{"INCR true", lie(`[{"result":true},{"result":1},{"result":60000}]`), unavailable},
		{"INCR array", lie(`[{"result":[1]},{"result":1},{"result":60000}]`), unavailable},
		{"INCR {}", lie(`[{},{"result":1},{"result":60000}]`), unavailable},
		{"INCR result and error", lie(`[{"result":1,"error":"ERR"},{"result":1},{"result":60000}]`), unavailable},
		{"Result with a capital", lie(`[{"Result":1},{"result":1},{"result":60000}]`), unavailable},
		{"garbage after JSON", lie(`[{"result":1},{"result":1},{"result":60000}]}`), unavailable},
		{"two answers", lie(`[{"result":1},{"result":1},{"result":60000}][]`), unavailable},
		{"truncated JSON", lie(`[{"result":1},{"result":1},{"resul`), unavailable},
		{"byte order mark", lie("\xef\xbb\xbf" + `[{"result":1},{"result":1},{"result":60000}]`), unavailable},
		{"HTML 200", reply(200, "text/html", page), unavailable},
		{"gzip unasked", upstashtest.Zipped(0, 0), unavailable},
		{"gzip bomb", upstashtest.Zipped(64<<20, 0), unavailable},
		{"truncated gzip", upstashtest.Zipped(0, 15), unavailable},
		{"10 MB", upstashtest.Huge(10 << 20), unavailable},
		{"64 KiB and a bit", upstashtest.Huge(64 << 10), unavailable},

		// What INCR did counts, whatever became of the others.
		{"PEXPIRE error", lie(`[{"result":1},{"error":"ERR` + secretKey + `"},{"result":60000}]`), counted},
		{"PEXPIRE null", lie(`[{"result":1},{"result":null},{"result":60000}]`), counted},
		{"PEXPIRE 7", lie(`[{"result":1},{"result":7},{"result":60000}]`), counted},
		{"PTTL error", lie(`[{"result":1},{"result":1},{"error":"NOPERM x"}]`), counted},
		{"PTTL string", lie(`[{"result":1},{"result":1},{"result":"60000"}]`), counted},
		{"PTTL -3", lie(`[{"result":1},{"result":0},{"result":-3}]`), counted},

		// Error slots: INCR was not executed.
		{"slots quota", errorSlots(quota), exhausted},
		{"slots daily quota", errorSlots(daily), exhausted},
		{"slots capacity", errorSlots("ERR DB capacity quota exceeded" + echoed), exhausted},
		{"slots OOM", errorSlots("OOM command not allowed when used memory > 'maxmemory'."), throttled},
		{"slots NOPERM", errorSlots("NOPERM this user has no permissions to run the 'incr' command" + echoed), configured},
		{"slots NOAUTH", errorSlots("NOAUTH Authentication required."), configured},
		{"slots WRONGPASS", errorSlots("WRONGPASS invalid or missing auth token"), configured},
		{"slots READONLY", errorSlots("READONLY You can't write against a read only replica."), refusing},
		{"slots LOADING", errorSlots("LOADING Redis is loading the dataset in memory"), refusing},
		{"slots MASTERDOWN", errorSlots("MASTERDOWN Link with MASTER is down"), refusing},
		{"slots WRONGTYPE", errorSlots("WRONGTYPE Operation against a key holding the wrong kind of value" + echoed), ofKey},
		{"slots no integer (Redis)", errorSlots("ERR value is not an integer or out of range"), ofKey},
		{"slots no integer (Upstash)", errorSlots("ERR value is not an int or out of range"), ofKey},
		{"slots overflow", errorSlots("ERR increment or decrement would overflow"), ofKey},
		{"slots key size", errorSlots("ERR max key size exceeded. Limit: 32768 bytes, Actual: 40000 bytes"), ofKey},
		{"slots unknown command", errorSlots("ERR unknown command 'INCR', with args beginning with:" + echoed), configured},
		{"slots not available", errorSlots("ERR Command is not available: 'INCR'. See https://upstash.com"), configured},
		{"slots unknown", errorSlots(secretKey + " is a strange thing"), refusing},
		{"slots timeout behind the server", errorSlots("ERR upstream timed out"), unavailable},
		{"slots empty text", errorSlots(""), refusing},
		{"INCR error, PEXPIRE fine", lie(`[{"error":"READONLY x"},{"result":0},{"result":-2}]`), refusing},

		// Statuses.
		{"200 with a quota object", object(200, quota), exhausted},
		{"400 quota", object(400, quota), exhausted},
		{"429 quota", object(429, daily), exhausted},
		{"400 syntax", object(400, "ERR syntax error"+echoed), configured},
		{"400 unknown", object(400, "ERR "+secretKey), rejected},
		{"400 text", reply(400, "text/plain", "Client sent an HTTP request to an HTTPS server.\n"), rejected},
		{"400 WRONGTYPE", object(400, "WRONGTYPE Operation"), ofKey},
		{"400 request size", object(400, "ERR max request size exceeded"), ofKey},
		{"401 WRONGPASS", object(401, "WRONGPASS invalid or missing auth token"), configured},
		{"401 Unauthorized", object(401, "Unauthorized"), configured},
		{"401 HTML", reply(401, "text/html", page), configured},
		{"402", reply(402, "text/html", page), exhausted},
		{"403 HTML", reply(403, "text/html", page), configured},
		{"404", reply(404, "text/plain", "404 page not found"), configured},
		{"405", reply(405, "text/plain", ""), configured},
		{"408", reply(408, "text/plain", ""), unavailable},
		{"413", reply(413, "text/html", page), rejected},
		{"429", upstashtest.ReplyWith(429, http.Header{"Retry-After": {"3600"}}, "slow down"), throttled},
		{"499", reply(499, "text/plain", ""), unavailable},
		{"500", reply(500, "application/json", `{"error":"ERR internal"}`), unavailable},
		{"500 with a known text", object(500, "LOADING Redis is loading"), refusing},
		{"502 HTML", reply(502, "text/html", page), unavailable},
		{"503", reply(503, "x/"+secretKey, page), unavailable},
		{"504", reply(504, "text/html", page), unavailable},
		{"530 error code: 1016", reply(530, "text/plain", "error code: 1016"), unavailable},
		{"work, then 502", upstashtest.Lost(reply(502, "text/html", page)), unavailable},
		{"201 with a good body", reply(201, "application/json", `[{"result":1},{"result":1},{"result":60000}]`), unavailable},
		{"204", func(x *upstashtest.Exchange) bool {
			_, err := x.Wire.Write([]byte("HTTP/1.1 204 No Content\r\n\r\n"))
			return err == nil
		}, unavailable},
		{"no HTTP", func(x *upstashtest.Exchange) bool { _, _ = x.Wire.Write([]byte("-ERR\r\n")); return false }, unavailable},
	}
}

// TestFaultMatrix meets the store with each fault. For each: the right kind of error, at
// most one INCR per hit, an end in bounded time, no word of key or token, and a store that
// works again when the server does.
func TestFaultMatrix(t *testing.T) {
	for _, tc := range faultCases() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var log journal
			srv := upstashtest.NewScripted(t, tc.f)
			limit := 30 * time.Second
			if silentFaults[tc.name] {
				limit = 2 * time.Second
			}
			s := open(t, srv.URL, timeout(limit), logTo(&log))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			d, err := s.Take(ctx, five)
			require.NoError(t, ctx.Err(), "in bounded time")
			tc.want.check(t, err)
			require.Equal(t, tc.want == counted, d.Allowed)
			require.LessOrEqual(t, srv.Came("INCR"), 1)
			require.Len(t, srv.Requests(), 1, "no second attempt")

			srv.Script(upstashtest.Good())
			_, err = open(t, srv.URL).Take(ctx, five)
			require.NoError(t, err)
			s = open(t, srv.URL, logTo(&log))
			_, err = s.Take(ctx, five)
			require.NoError(t, err, "the server works again")
			noSecret(t, log.String())
		})
	}
}
