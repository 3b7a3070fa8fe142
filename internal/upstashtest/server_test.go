package upstashtest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// ask sends one request and returns status and body.
func ask(t *testing.T, s *Server, method, path, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+s.Token)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	require.NotEmpty(t, resp.Header.Get("Upstash-Sync-Token"))
	return resp.StatusCode, string(got)
}

// TestManners holds the double against what Upstash documents, over both databases.
func TestManners(t *testing.T) {
	cases := []struct {
		name, method, path, body string
		header                   []string
		code                     int
		want                     string
	}{
		{"one command", "POST", "/", `["SET","a","1"]`, nil, 200, `{"result":"OK"}`},
		{"one without slash", "POST", "", `["INCR","a"]`, nil, 200, `{"result":2}`},
		{"numbers", "POST", "/", `["SET","n",600000]`, nil, 200, `{"result":"OK"}`},
		{"a string", "POST", "/", `["GET","a"]`, nil, 200, `{"result":"2"}`},
		{"null", "POST", "/", `["GET","none"]`, nil, 200, `{"result":null}`},
		{"an array", "POST", "/", `["MGET","a","none"]`, nil, 200, `{"result":["2",null]}`},
		{"failed execution", "POST", "/", `["LPUSH","a","x"]`, nil, 400, `{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}`},
		{"blocking", "POST", "/", `["BLPOP","a","0"]`, nil, 400, `{"error":"ERR Command is not available: 'BLPOP'"}`},
		{"no JSON", "POST", "/", `INCR a`, nil, 400, `{"error":"ERR failed to parse the request"}`},
		{"an object", "POST", "/", `{"INCR":"a"}`, nil, 400, `{"error":"ERR failed to parse the request"}`},
		{"empty", "POST", "/", `[]`, nil, 400, `{"error":"ERR failed to parse the request"}`},
		{"path", "GET", "/set/p/q%20r?EX=100", ``, nil, 200, `{"result":"OK"}`},
		{"path with body", "POST", "/set/p", `from the body`, nil, 200, `{"result":"OK"}`},
		{"path read", "GET", "/get/p", ``, nil, 200, `{"result":"from the body"}`},
		{"method", "DELETE", "/", `["INCR","a"]`, nil, 405, `{"error":"ERR method not allowed"}`},
		{"wrong token", "POST", "/pipeline", `[["INCR","a"]]`, []string{"Authorization", "Bearer wrong"}, 401, `{"error":"WRONGPASS invalid or missing auth token"}`},
		{"no token", "POST", "/", `["INCR","a"]`, []string{"Authorization", ""}, 401, `{"error":"WRONGPASS invalid or missing auth token"}`},
		{"token in the query", "POST", "/?_token=" + DefaultToken, `["GET","a"]`, []string{"Authorization", ""}, 200, `{"result":"2"}`},
		{"pipeline", "POST", "/pipeline", `[["INCR","c"],["PEXPIRE","c","60000","NX"],["PEXPIRE","c","60000","NX"],["PTTL","none"]]`, nil, 200,
			`[{"result":1},{"result":1},{"result":0},{"result":-2}]`},
		{"pipeline with a failure", "POST", "/pipeline", `[["INCR","c"],["LPUSH","c","x"],["SHUTDOWN"],["INCR","c"]]`, nil, 200,
			`[{"result":2},{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"},{"error":"ERR Command is not available: 'SHUTDOWN'"},{"result":3}]`},
		{"pipeline, bad JSON", "POST", "/pipeline", `["INCR","c"]`, nil, 400, `{"error":"ERR failed to parse the request"}`},
		{"transaction", "POST", "/multi-exec", `[["INCR","c"],["LPUSH","c","x"],["INCR","c"]]`, nil, 200,
			`[{"result":4},{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"},{"result":5}]`},
		{"transaction discarded", "POST", "/multi-exec", `[["INCR","c"],["BLPOP","c","0"]]`, nil, 400, `{"error":"EXECABORT ERR Command is not available: 'BLPOP'"}`},
		{"base64", "POST", "/pipeline", `[["SET","b","x"],["GET","b"],["INCR","c"],["MGET","b","none"]]`, []string{"Upstash-Encoding", "base64"}, 200,
			`[{"result":"OK"},{"result":"eA=="},{"result":6},{"result":["eA==",null]}]`},
		{"another encoding", "POST", "/", `["GET","b"]`, []string{"Upstash-Encoding", "rot13"}, 400, `{"error":"ERR unsupported encoding"}`},
	}
	for name, open := range map[string]func(testing.TB) *Server{"miniredis": New, "redis-server": NewReal} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for _, tc := range cases {
				code, body := ask(t, s, tc.method, tc.path, tc.body, tc.header...)
				require.Equal(t, tc.code, code, tc.name)
				require.JSONEq(t, tc.want, body, tc.name)
			}
			require.Equal(t, len(cases), s.Requests())
			code, body := ask(t, s, "POST", "/", `["EVAL","return redis.call('INCR',KEYS[1])","1","c"]`)
			require.Equal(t, 200, code, body)
			require.JSONEq(t, `{"result":7}`, body)
			_, body = ask(t, s, "POST", "/", `["EVALSHA","ffffffffffffffffffffffffffffffffffffffff","1","c"]`)
			require.Contains(t, body, "NOSCRIPT No matching script. Please use EVAL.")
			_, body = ask(t, s, "POST", "/", `["TIME"]`, "Upstash-Encoding", "base64")
			var clock struct{ Result []string }
			require.NoError(t, json.Unmarshal([]byte(body), &clock))
			seconds, err := base64.StdEncoding.DecodeString(clock.Result[0])
			require.NoError(t, err)
			require.Len(t, string(seconds), 10)
		})
	}
}

func TestRecordAndFaults(t *testing.T) {
	s := New(t)
	incr := func() (int, string) { return ask(t, s, "POST", "/pipeline", `[["INCR","a"],["PTTL","a"]]`) }
	incr()
	require.Equal(t, [][]string{{"INCR", "a"}, {"PTTL", "a"}}, s.Commands())
	require.Equal(t, 1, s.Count("incr"))
	require.Equal(t, 2, s.Count(""))

	s.SetSlotError("INCR", "NOPERM x")
	_, body := incr()
	require.JSONEq(t, `[{"error":"NOPERM x"},{"result":-1}]`, body)
	s.SetSlotError("INCR", "")
	s.SetSlotError("*", "ERR max requests limit exceeded")
	_, body = incr()
	require.JSONEq(t, `[{"error":"ERR max requests limit exceeded"},{"error":"ERR max requests limit exceeded"}]`, body)
	s.SetSlotError("*", "")

	s.CutAfterApply(1)
	_, err := http.Post(s.URL+"/pipeline?_token="+s.Token, "application/json", strings.NewReader(`[["INCR","a"]]`))
	require.Error(t, err)
	n, err := s.Do("GET", "a")
	require.NoError(t, err)
	require.Equal(t, "2", n, "applied, then cut")

	s.SetDown(true)
	_, err = http.Post(s.URL, "application/json", nil)
	require.ErrorContains(t, err, "refused")
	s.SetDown(false)
	incr()
	s.Forget()
	require.Zero(t, s.Requests())
	require.Empty(t, s.Commands())
}

// TestBubble: in a bubble keys expire by its clock, and nothing touches the network.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewBubble(t)
		client := &http.Client{Transport: s.Transport(), Timeout: time.Second}
		post := func() (string, error) {
			resp, err := client.Post(s.URL+"/pipeline?_token="+s.Token, "application/json",
				strings.NewReader(`[["INCR","a"],["PEXPIRE","a","500","NX"]]`))
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			return string(b), err
		}
		for range 3 {
			body, err := post()
			require.NoError(t, err)
			require.JSONEq(t, `[{"result":1},{"result":1}]`, body)
			time.Sleep(500 * time.Millisecond)
		}
		s.SetDelay(2 * time.Second)
		start := time.Now()
		_, err := post()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		s.SetDelay(0)
		s.SetDown(true)
		_, err = post()
		require.ErrorContains(t, err, "refused")
		s.SetDown(false)
		s.CutAfterApply(1)
		_, err = post()
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}

// TestKeyLocking: Upstash takes a script that begins with its flag, and Redis does not.
func TestKeyLocking(t *testing.T) {
	const plain = "return redis.call('INCR',KEYS[1])"
	const body = `["EVAL","#!lua flags=allow-key-locking\n` + plain + `","1","c"]`
	const again = `["EVALSHA","%s","1","c"]`
	for name, open := range map[string]func(testing.TB) *Server{"miniredis": New, "redis-server": NewReal} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			by := fmt.Sprintf(again, sha(keyLocking+plain))
			_, got := ask(t, s, "POST", "/", by)
			require.Contains(t, got, "NOSCRIPT")
			_, got = ask(t, s, "POST", "/", body)
			require.JSONEq(t, `{"result":1}`, got)
			_, got = ask(t, s, "POST", "/", by)
			require.JSONEq(t, `{"result":2}`, got)
			_, got = ask(t, s, "POST", "/multi-exec", "["+by+","+body+"]")
			require.JSONEq(t, `[{"result":3},{"result":4}]`, got)
			_, err := s.Do("SCRIPT", "FLUSH")
			require.NoError(t, err)
			_, got = ask(t, s, "POST", "/", by)
			require.Contains(t, got, "NOSCRIPT")
			s.SetStock(true)
			code, got := ask(t, s, "POST", "/", body)
			require.Equal(t, 400, code)
			require.Contains(t, got, `"error":"ERR `)
		})
	}
}
