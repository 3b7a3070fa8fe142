package handler

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

func TestParseKey(t *testing.T) {
	for text, want := range map[string]string{
		"ip":                         "ip",
		" ip ":                       "ip",
		"net:24,48":                  "net:24,48",
		"net: 32 , 128":              "net:32,128",
		"header:x-api-key":           "header:X-Api-Key",
		"header:X-Email|email":       "header:X-Email|email",
		"header:X-Email | email":     "header:X-Email|email",
		"header:X-Email|email|email": "header:X-Email|email",
		`header:"A|b"`:               `header:"A|b"`,
		"cookie:sid":                 "cookie:sid",
		"form:email|email":           "form:email|email",
		"form:email[]":               "form:email[]",
		`form:"e-mail address"`:      `form:"e-mail address"`,
		`form:"a\"b\\c,(d)|e"`:       `form:"a\"b\\c,(d)|e"`,
		`form:"plain"`:               "form:plain",
		`form:"straße"`:              `form:"straße"`,
		"json:user.email":            "json:user.email",
		`json:"a b.c"|email`:         `json:"a b.c"|email`,
		"claim:sub":                  "claim:sub",
		"claim:cognito:username":     "claim:cognito:username",
		"claim:https://a.example/id": "claim:https://a.example/id",
		"route":                      "route",
		"everyone":                   "everyone",
		"manual":                     "manual",
		"join(ip,route)":             "join(ip,route)",
		" join ( ip , route ) ":      "join(ip,route)",
		"join(net:24,48,ip)":         "join(net:24,48,ip)",
		"first(header:X-Api-Key,ip)": "first(header:X-Api-Key,ip)",
		"first(join(cookie:a|email,route),first(form:b),ip)":               "first(join(cookie:a|email,route),first(form:b),ip)",
		strings.Repeat("join(", 15) + "ip" + strings.Repeat(")", 15):       strings.Repeat("join(", 15) + "ip" + strings.Repeat(")", 15),
		"first(json:" + strings.Repeat("a.", 15) + "a,form:\"a b\"|email)": "first(json:" + strings.Repeat("a.", 15) + "a,form:\"a b\"|email)",
	} {
		k, err := ParseKey(text)
		require.NoError(t, err, text)
		require.Equal(t, want, k.String())
		again, err := ParseKey(want)
		require.NoError(t, err)
		require.Equal(t, k, again, "the text says all of the key")
		_, err = New(Config{Store: newSharedStore(t), ClientIP: Direct(), Logger: new(logBuffer).logger(), Policies: []Policy{{Name: "p", Limit: limitForFuzz, Key: k}}})
		require.NoError(t, err)
	}
}

func TestParseKeyErrors(t *testing.T) {
	for text, says := range map[string]string{
		"":                "want one of ip, net:24,48",
		"heder:X-Api-Key": "want one of ip, net:24,48",
		"IP":              "want one of ip, net:",
		"ip:1":            "nothing more",
		"ip ip":           "nothing more",
		"ip)":             "nothing more",
		"func":            "in code",
		"net":             "net:24,48",
		"net:24":          "two numbers",
		"net:24,":         "two numbers",
		"net:0,64":        "1 to 32 bits",
		"net:33,64":       "1 to 32 bits",
		"net:24,129":      "1 to 128",
		"net:24,300":      "two numbers",
		"net:-1,64":       "two numbers",
		"net:+1,64":       "two numbers",
		"header":          "a name",
		"header:":         "header's name",
		"header:a b":      "nothing more, or names in quotes",
		`header:"a b"`:    "header's name",
		"cookie:":         "cookie's name",
		"form:":           "form's field",
		`form:""`:         "form's field",
		`form:"a`:         "quotes",
		`form:"\q"`:       "quotes",
		`form:'a'b"`:      "nothing more",
		`form:"\xff"`:     "form's field",
		`form:"\x00"`:     "form's field",
		"form:" + strings.Repeat("a", maxFieldName+1): "form's field",
		"json:":                                  "path",
		"json:a..b":                              "path",
		"json:.a":                                "path",
		"json:" + strings.Repeat("a.", 16) + "a": "path",
		"claim:":                                 "claim's name",
		"ip|email":                               "Email is for",
		"join(ip)|email":                         "Email is for",
		"header:A|lower":                         "want email",
		"header:A|":                              "want email",
		"join":                                   `"("`,
		"join(":                                  "want one of ip, net:",
		"join()":                                 "want one of ip, net:",
		"join(ip":                                `"," or ")"`,
		"join(ip,)":                              "want one of ip, net:",
		"join(ip;route)":                         "want one of ip, net:", "join(ip route)": `"," or ")"`,
		"join(manual)":   "Manual can't be a part",
		"first(ip,nope)": "want one of ip, net:",
		strings.Repeat("join(", 16) + "ip" + strings.Repeat(")", 16): "16 of them",
		strings.Repeat("join(", 900):                                 "longer than",
		"join(" + strings.Repeat("ip,", maxKeyText) + "ip)":          "longer than",
	} {
		k, err := ParseKey(text)
		require.ErrorIs(t, err, stores.ErrInvalid, text)
		require.ErrorContains(t, err, says, text)
		require.Less(t, len(err.Error()), 600)
		require.Equal(t, Key{}, k)
	}
}

// String is ParseKey's inverse for every key that code can make, functions apart.
func TestKeyTextRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	name := func() string {
		const bytes = `ab.Z-_[](),|":\ é` + "\t\u2028"
		runes := []rune(bytes)
		s := ""
		for range 1 + rng.IntN(6) {
			s += string(runes[rng.IntN(len(runes))])
		}
		return s
	}
	var any func(depth int) Key
	any = func(depth int) Key {
		n := 10
		if depth > 3 {
			n = 8
		}
		switch rng.IntN(n) {
		case 0:
			return ByIP()
		case 1:
			return ByNetwork(1+rng.IntN(32), 1+rng.IntN(128))
		case 2:
			return []Key{ByHeader("X|a"), ByHeader("x-key"), ByHeader("!#$%&'*+-.^_`|~").Email()}[rng.IntN(3)]
		case 3:
			return []Key{ByCookie("a|b"), ByCookie("sid")}[rng.IntN(2)]
		case 4:
			return ByForm(name())
		case 5:
			return ByForm(name()).Email()
		case 6:
			return ByClaim(name())
		case 7:
			return []Key{ByRoute(), Everyone(), ByJSON("a b.c|d").Email(), ByJSON("x")}[rng.IntN(4)]
		case 8:
			return Join(any(depth+1), any(depth+1))
		}
		return FirstOf(any(depth+1), any(depth+1), any(depth+1))
	}
	for range 20_000 {
		k := any(0)
		text := k.String()
		if len(text) > maxKeyText {
			continue
		}
		parsed, err := ParseKey(text)
		require.NoError(t, err, text)
		require.Equal(t, k, parsed, text)
	}
}

func TestKeyMarshal(t *testing.T) {
	k := Join(ByForm("a b").Email(), ByIP())
	b, err := json.Marshal(map[string]Key{"k": k})
	require.NoError(t, err)
	var back map[string]Key
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, k, back["k"])
	require.ErrorIs(t, json.Unmarshal([]byte(`{"k":"nope"}`), &back), stores.ErrInvalid)
	for _, k := range []Key{{}, ByFunc(func(*http.Request) string { return "" }), FirstOf(ByFunc(func(*http.Request) string { return "" })), ByHeader(""), Join()} {
		_, err := k.MarshalText()
		require.ErrorIs(t, err, stores.ErrInvalid)
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"ip", "net:24,48", `join(form:"a b"|email,first(json:a.b,claim:c:d),route)`, "first(((", `header:"\x41"`, "manual", "net:", "|email"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ParseKey(text)
		if err != nil {
			require.ErrorIs(t, err, stores.ErrInvalid)
			require.Equal(t, Key{}, k)
			return
		}
		require.NoError(t, k.source.check())
		// The canonical text may be longer than the one that was read, by its quotes.
		if canonical := k.String(); len(canonical) <= maxKeyText {
			again, err := ParseKey(canonical)
			require.NoError(t, err, canonical)
			require.Equal(t, k, again)
			require.Equal(t, canonical, again.String())
		}
	})
}
