package upstash

import (
	"encoding/json"
	"strconv"
	"strings"
)

// The bodies of pipelines are put together by hand: they are short, always alike, and
// on the way of every request. Every argument is a JSON string; some servers turn
// JSON numbers into floats.

const (
	incrOpen    = `[["INCR","`
	getOpen     = `[["GET","`
	delOpen     = `[["DEL","`
	expireOpen  = `[["PEXPIRE","`
	thenExpire  = `"],["PEXPIRE","`
	thenTTL     = `"],["PTTL","`
	unlessThere = `","NX"]`
	inKey       = `","`
	end         = `"]]`
)

var escaper = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// quoted returns a key as it stands between the quotes of a JSON string. Keys are
// printable ASCII, so two characters need care.
func quoted(key string) string {
	if strings.ContainsAny(key, `"\`) {
		return escaper.Replace(key)
	}
	return key
}

// countBody counts a hit and opens its window; with askTTL it asks for the window's
// end.
func countBody(key string, ms int64, askTTL bool) []byte {
	key = quoted(key)
	b := make([]byte, 0, 3*len(key)+96)
	b = append(b, incrOpen...)
	b = append(b, key...)
	b = append(b, thenExpire...)
	b = append(b, key...)
	b = append(b, inKey...)
	b = strconv.AppendInt(b, ms, 10)
	b = append(b, unlessThere...)
	if askTTL {
		b = append(b, `,["PTTL","`...)
		b = append(b, key...)
		b = append(b, `"]`...)
	}
	return append(b, ']')
}

// plainCountBody counts a hit where PEXPIRE has no NX.
func plainCountBody(key string) []byte {
	return []byte(incrOpen + quoted(key) + thenTTL + quoted(key) + end)
}

// plainExpireBody sets an expiry whatever is there.
func plainExpireBody(key string, ms int64) []byte {
	return []byte(expireOpen + quoted(key) + inKey + strconv.FormatInt(ms, 10) + end)
}

// evalshaBody has the server run a script that it has.
func evalshaBody(sha, step string, hits []asked) []byte {
	return stepBody(`[["EVALSHA","`+sha, step, hits)
}

// evalBody brings the script along.
func evalBody(script, step string, hits []asked) []byte {
	text, _ := json.Marshal(script) // a string never fails
	return stepBody(`[["EVAL",`+string(text[:len(text)-1]), step, hits)
}

// stepBody puts what the script works with behind its name, which still lacks a quote:
// see step.lua.
func stepBody(name, step string, hits []asked) []byte {
	size := len(name) + 64
	for i := range hits {
		size += len(hits[i].key) + 128
	}
	b := append(make([]byte, 0, size), name...)
	b = append(b, inKey...)
	b = strconv.AppendInt(b, int64(len(hits)), 10)
	for i := range hits {
		b = append(b, inKey...)
		b = append(b, quoted(hits[i].key)...)
	}
	b = append(b, inKey...)
	b = append(b, step...)
	for i := range hits {
		a := &hits[i].args
		b = append(b, inKey...)
		b = append(b, a.way...)
		goesOn := int64(0)
		if a.open {
			goesOn = 1
		}
		for _, n := range [...]int64{a.quota, a.cost, a.length, a.block, a.emission, a.owed, a.until, goesOn} {
			b = append(b, inKey...)
			b = strconv.AppendInt(b, n, 10)
		}
	}
	return append(b, end...)
}

func peekBody(key string) []byte  { return []byte(getOpen + quoted(key) + thenTTL + quoted(key) + end) }
func resetBody(key string) []byte { return []byte(delOpen + quoted(key) + end) }
