package upstash

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/fault"
	"github.com/sallyport/sallyport/stores"
)

func TestParse(t *testing.T) {
	isOne := slot{kind: isInt, n: 1}
	numbers := func(n ...int64) slot { return slot{kind: isList, list: append([]int64{}, n...)} }
	failedAt := func(text string, n ...int64) slot {
		return slot{kind: isList, list: append([]int64{}, n...), text: text}
	}
	cases := []struct {
		body string
		want []slot // nil: an error
	}{
		{`[{"result":1},{"result":1}]`, []slot{isOne, isOne}},
		{" [\n{ \"result\" :\t1 } , {\"result\":1}\r\n]\n", []slot{isOne, isOne}},
		{`[{"result":9007199254740993},{"result":9223372036854775807}]`, []slot{{kind: isInt, n: 1<<53 + 1}, {kind: isInt, n: 1<<63 - 1}}},
		{`[{"result":-2},{"result":0}]`, []slot{{kind: isInt, n: -2}, {kind: isInt}}},
		{`[{"result":"5"},{"result":null}]`, []slot{{kind: isText, text: "5"}, {kind: isNull}}},
		{`[{"result":"a,]}{[\"\\"},{"error":"ERR \u0041 \"x\", ]"}]`, []slot{{kind: isText, text: `a,]}{["\`}, {kind: isError, text: `ERR A "x", ]`}}},
		{`[{"error":""},{"result":1}]`, []slot{{kind: isError}, isOne}},

		{`[{"result":[1,2,3]},{"result": [ -1 ,0,9223372036854775807 ] }]`, []slot{numbers(1, 2, 3), numbers(-1, 0, 1<<63-1)}},
		{`[{"result":[]},{"result":[1]}]`, []slot{numbers(), numbers(1)}},
		{`[{"result":[1,2,"ERR \u0041, ]"]},{"result":[ "x" ]}]`, []slot{failedAt("ERR A, ]", 1, 2), failedAt("x")}},

		// JSON of the right length, with slots that no command can have.
		{`[{"result":["x",1]},{"result":[1,"x","y"]}]`, []slot{{}, {}}},
		{`[{"result":[1,""]},{"result":[""]}]`, []slot{{}, {}}},
		{`[{"result":[1,["x"]]},{"result":[[]]}]`, []slot{{}, {}}},
		{`[{"result":[1,2,3.0]},{"result":[1e2,2,3]}]`, []slot{{}, {}}},
		{`[{"result":[1,2,null]},{"result":[1,[2],3]}]`, []slot{{}, {}}},
		{`[{"result":[[1,2,3]]},{"result":[9223372036854775808,2,3]}]`, []slot{{}, {}}},
		{`[{"result":[true,2,3]},{"result":{"0":1,"1":2,"2":3}}]`, []slot{{}, {}}},
		{`[{"result":1.0},{"result":1e3}]`, []slot{{}, {}}},
		{`[{"result":1e400},{"result":9223372036854775808}]`, []slot{{}, {}}},
		{`[{"result":true},{"result":[true]}]`, []slot{{}, {}}},
		{`[{"result":{"result":1}},{}]`, []slot{{}, {}}},
		{`[1,null]`, []slot{{}, {}}},
		{`["result",[]]`, []slot{{}, {}}},
		{`[{"Result":1},{"RESULT":1}]`, []slot{{}, {}}},
		{`[{"resul\u0074":1},{"x":1}]`, []slot{{}, {}}},
		{`[{"result":1,"result":2},{"result":1,"error":"ERR"}]`, []slot{{}, {}}},
		{`[{"error":null},{"error":5}]`, []slot{{}, {}}},
		{`[{"error":"ERR","result":1},{"result":1,"x":{}}]`, []slot{{}, {}}},

		{``, nil},
		{` `, nil},
		{`null`, nil},
		{`1`, nil},
		{`"OK"`, nil},
		{`{}`, nil},
		{`[]`, nil},
		{`{"result":1}`, nil},
		{`{"result":"OK"}`, nil},
		{`{"result":[1,1]}`, nil},
		{`[{"result":1}]`, nil},
		{`[{"result":1},{"result":1},{"result":1}]`, nil},
		{`[[{"result":1},{"result":1}]]`, nil},
		{`[{"result":1},{"result":1}`, nil},
		{`[{"result":1},{"result":1}]x`, nil},
		{`[{"result":1},{"result":1}][]`, nil},
		{`[{"result":1},{"result":1},]`, nil},
		{`[{"result":01},{"result":1}]`, nil},
		{`[{"result":+1},{"result":1}]`, nil},
		{`[{"result":NaN},{"result":1}]`, nil},
		{"\xef\xbb\xbf" + `[{"result":1},{"result":1}]`, nil},
		{`<!doctype html><title>502</title>`, nil},
		{`error code: 1016`, nil},
		{"\x1f\x8b\x08\x00", nil},
		{strings.Repeat("[", 20000), nil},
	}
	for _, tc := range cases {
		t.Run(tc.body[:min(len(tc.body), 60)], func(t *testing.T) {
			got := make([]slot, 2)
			err := parse([]byte(tc.body), got)
			if tc.want != nil {
				require.NoError(t, err)
				require.Equal(t, tc.want, got)
				return
			}
			require.ErrorIs(t, err, stores.ErrUnavailable)
			require.False(t, fault.Definite(err), "nonsense says nothing about what was done")
		})
	}
}

func TestParseWholeError(t *testing.T) {
	err := parse([]byte(`{"error":"ERR max requests limit exceeded. Limit: 500000, Usage: 500000."}`), make([]slot, 2))
	require.ErrorIs(t, err, stores.ErrThrottled)
	require.True(t, fault.Definite(err))
	err = parse([]byte(`{"error":"ERR something new"}`), make([]slot, 2))
	require.ErrorIs(t, err, stores.ErrUnavailable)
	require.False(t, fault.Definite(err))
}

// FuzzParse holds the parser against encoding/json: what it accepts, that one reads in
// the same way, and no answer becomes a count by mistake.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`[{"result":1},{"result":1}]`, `[{"result":null},{"error":"ERR x"}]`, `{"error":"WRONGPASS x"}`,
		`[{"result":"5"},{"result":-1}]`, `[{"a":[{}]},{"result":1.5}]`, ` [ { "result" : 1 } , 2 ] `, `[{"result":-0},"\\\""]`, `[]`, `null`, `x`,
		`[{"result":[1,2,3]},{"result":[1,null,3]}]`, `[{"result":[1,2,3,]},{"result":[-0,2,"3"]}]`, `[{"result":[1,2,"x"]},{"result":["x",1]}]`, `[{"result":[]},{"result":[""]}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := make([]slot, 2)
		err := parse(body, got)
		var raw []json.RawMessage
		wrong := json.Unmarshal(body, &raw)
		if err != nil {
			require.True(t, wrong != nil || len(raw) != 2, "refused: %q", body)
			var f *fault.Error
			require.True(t, errors.As(err, &f))
			return
		}
		require.NoError(t, wrong)
		require.Len(t, raw, 2)
		for i, s := range got {
			var members map[string]json.RawMessage
			_ = json.Unmarshal(raw[i], &members)
			switch s.kind {
			case isInt:
				var n int64
				require.Len(t, members, 1)
				require.NoError(t, json.Unmarshal(members["result"], &n))
				require.Equal(t, n, s.n)
				require.NotEqual(t, "null", string(members["result"]))
			case isText, isError:
				var text string
				require.Len(t, members, 1)
				name := map[slotKind]string{isText: "result", isError: "error"}[s.kind]
				require.NoError(t, json.Unmarshal(members[name], &text))
				require.Equal(t, text, s.text)
			case isList:
				var all []json.RawMessage
				require.Len(t, members, 1)
				require.NoError(t, json.Unmarshal(members["result"], &all))
				if s.text != "" {
					var text string
					require.NoError(t, json.Unmarshal(all[len(all)-1], &text))
					require.Equal(t, s.text, text)
					all = all[:len(all)-1]
				}
				require.Len(t, s.list, len(all))
				for i, one := range all {
					var n int64
					require.NotEqual(t, "null", string(one))
					require.NoError(t, json.Unmarshal(one, &n))
					require.Equal(t, n, s.list[i])
				}
			case isNull:
				require.Equal(t, "null", string(members["result"]))
			}
		}
	})
}

func TestBodies(t *testing.T) {
	for _, key := range []string{"plain", `a"b\c`, ` !#$%&'()*+,-./:;<=>?@[]^_{|}~`, `","NX"],["FLUSHALL`, `\u0000`} {
		for body, want := range map[string][][]string{
			string(countBody(key, 600000, true)): {{"INCR", key}, {"PEXPIRE", key, "600000", "NX"}, {"PTTL", key}},
			string(countBody(key, 1, false)):     {{"INCR", key}, {"PEXPIRE", key, "1", "NX"}},
			string(plainCountBody(key)):          {{"INCR", key}, {"PTTL", key}},
			string(plainExpireBody(key, 1500)):   {{"PEXPIRE", key, "1500"}},
			string(peekBody(key)):                {{"GET", key}, {"PTTL", key}},
			string(resetBody(key)):               {{"DEL", key}},
		} {
			require.Equal(t, want, commands(t, []byte(body)))
		}
	}
}

// commands reads a request's body, in which all is a string.
func commands(t *testing.T, body []byte) (all [][]string) {
	t.Helper()
	require.NoError(t, json.Unmarshal(body, &all), string(body))
	return all
}
