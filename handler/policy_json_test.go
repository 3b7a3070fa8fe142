package handler

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

func TestParsePolicies(t *testing.T) {
	policies, err := ParsePolicies([]byte(`
	[ {"name":"ip","limit":"20/1m","key":"ip"},
	  {"key":"form:email|email", "outage":"refuse", "mode":"signal", "limit":"cooldown 15m", "showQuota":true, "name":"reset \"mail\""},
	  {"name":"default", "limit":"5/10m", "key":"everyone", "mode":"enforce", "outage":"fallback", "showQuota":false} ] `))
	require.NoError(t, err)
	require.Equal(t, []Policy{
		{Name: "ip", Limit: stores.FixedWindow(20, time.Minute), Key: ByIP()},
		{Name: `reset "mail"`, Limit: stores.Cooldown(15 * time.Minute), Key: ByForm("email").Email(), Mode: Signal, Outage: stores.OutageRefuse, ShowQuota: true},
		{Name: "default", Limit: stores.FixedWindow(5, 10*time.Minute), Key: Everyone()},
	}, policies)
	_, err = New(Config{Store: newSharedStore(t), ClientIP: Direct(), Policies: policies, Logger: new(logBuffer).logger()})
	require.NoError(t, err)
}

// Each error says which policy, which field, and what was expected there.
func TestParsePoliciesErrors(t *testing.T) {
	one := func(fields string) string {
		return `[{"name":"a","limit":"5/10m","key":"ip"},{"name":"b",` + fields + `}]`
	}
	const second = `policies[1] "b": `
	for text, says := range map[string][]string{
		"":                                      {"no JSON", "at byte 0"},
		"null":                                  {"null: want a list"},
		"{}":                                    {"an object: want a list"},
		`"ip"`:                                  {"a text: want a list"},
		"7":                                     {"a number: want a list"},
		" true":                                 {"true or false: want a list"},
		"[]":                                    {"none given"},
		"[{}] x":                                {"no JSON", "at byte 6"},
		"[{}][]":                                {"no JSON"},
		"[{}":                                   {"no JSON"},
		"[{},]":                                 {"no JSON"},
		"\ufeff[]":                              {"no JSON", "at byte 1"},
		"[\"\xff\"]":                            {"not UTF-8"},
		"[null]":                                {`policies[0] "": `, "null: want an object"},
		"[7]":                                   {`policies[0] "": `, "a number: want an object"},
		"[[]]":                                  {`policies[0] "": `, "a list: want an object"},
		"[{}]":                                  {`policies[0] "": `, `field "name": it is missing`},
		`[{"name":"a"}]`:                        {`policies[0] "a": `, `field "limit": it is missing`, "sliding 5/10m"},
		one(`"limit":"5/10m"`):                  {second, `field "key": it is missing`, `"ip"`},
		one(`"key":"ip"`):                       {second, `field "limit": it is missing`},
		one(`"limit":5,"key":""`):               {second, `field "limit": a number: want a text such as "sliding 5/10m"`},
		one(`"limit":null`):                     {second, `field "limit": null: want a text`},
		one(`"limit":["5/10m"]`):                {second, `field "limit": a list`},
		one(`"limit":{"a":{}}`):                 {second, `field "limit": an object`},
		one(`"limit":"5 per 10m"`):              {second, `field "limit": `, "want quota/window"},
		one(`"limit":"0/10m"`):                  {second, `field "limit": `, "a quota of 0"},
		one(`"key":"hedaer:X","limit":"5/10m"`): {second, `field "key": `, "header:NAME"},
		one(`"key":"func","limit":"5/10m"`):     {second, `field "key": `, "in code"},
		one(`"key":true`):                       {second, `field "key": true or false: want a text such as "ip"`},
		one(`"mode":"Enforce","limit":"5/10m","key":"ip"`): {second, `field "mode": `, `want "enforce", "report" or "signal"`},
		one(`"mode":0`):             {second, `field "mode": a number: want "enforce", "report" or "signal"`},
		one(`"outage":"fall back"`): {second, `field "outage": `, `"fallback", "allow" or "refuse"`},
		one(`"outage":false`):       {second, `field "outage": true or false: want "fallback"`},
		one(`"showQuota":"true"`):   {second, `field "showQuota": a text: want true or false`},
		one(`"showQuota":null`):     {second, `field "showQuota": null: want true or false`},
		one(`"showQuota":1`):        {second, `field "showQuota": a number`},
		one(`"Limit":"5/10m"`):      {second, `field "Limit": there is none of this name: want name, limit, key`},
		one(`"skip":true`):          {second, `field "skip": there is none`},
		one(`"":1`):                 {second, `field "": there is none`},
		one(`"limit":"5/10m","limit":"5/10m","key":"ip"`):                                  {second, `field "limit": it is there twice`},
		one(`"limit":"5/10m","l\u0069mit":"5/10m","key":"ip"`):                             {second, `field "limit": it is there twice`},
		one(`"limit":"5/10m","key":"ip","name":"c"`):                                       {second, `field "name": it is there twice`},
		`[{"limit":7,"key":"ip","name":"last"}]`:                                           {`policies[0] "last": `, `field "limit": a number`},
		`[{"name":7,"limit":"5/10m","key":"ip"}]`:                                          {`policies[0] "": `, `field "name": a number: want a text of printable ASCII`},
		`[{"name":"","limit":"5/10m","key":"ip"}]`:                                         {`policies[0] "": `, "1 to 128 bytes of printable ASCII"},
		`[{"name":"ä","limit":"5/10m","key":"ip"}]`:                                        {`policies[0] "ä": `, "1 to 128 bytes of printable ASCII"},
		`[{"name":"a\u0000","limit":"5/10m","key":"ip"}]`:                                  {"printable ASCII"},
		`[{"name":"` + strings.Repeat("a", 129) + `","limit":"5/10m","key":"ip"}]`:         {"1 to 128 bytes"},
		`[{"name":"a","limit":"5/10m","key":"ip"},{"name":"a","limit":"5/1m","key":"ip"}]`: {`policies[1] "a": `, "name: another policy has it"},
	} {
		policies, err := ParsePolicies([]byte(text))
		require.ErrorIs(t, err, stores.ErrInvalid, text)
		require.Nil(t, policies)
		for _, part := range says {
			require.ErrorContains(t, err, part, text)
		}
		require.Less(t, len(err.Error()), 700, text)
	}
}

// What ParsePolicies takes, New takes, up to the store's word; what New refuses
// without asking it, ParsePolicies refuses.
func TestParsePoliciesAgreesWithNew(t *testing.T) {
	valid := func(p Policy) bool {
		b, err := json.Marshal([]Policy{p})
		if err != nil {
			return false
		}
		_, err = ParsePolicies(b)
		return err == nil
	}
	for name, p := range map[string]Policy{
		"fine": byIP("a", 5), "no name": byIP("", 5), "odd name": byIP("\x7f", 5), "long name": byIP(strings.Repeat("a", 129), 5),
		"no limit": {Name: "a", Key: ByIP()}, "quota": byIP("a", 0), "no key": {Name: "a", Limit: limitForFuzz}, "bad key": {Name: "a", Limit: limitForFuzz, Key: ByHeader("")},
		"mode": {Name: "a", Limit: limitForFuzz, Key: ByIP(), Mode: 9}, "outage": {Name: "a", Limit: limitForFuzz, Key: ByIP(), Outage: 9},
	} {
		_, err := New(Config{Store: newSharedStore(t), ClientIP: Direct(), Policies: []Policy{p}, Logger: new(logBuffer).logger()})
		require.Equal(t, err == nil, valid(p), name)
	}
}

func TestPoliciesRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	keys := []Key{ByIP(), ByForm("a\"b").Email(), Join(ByNetwork(24, 48), ByRoute()), FirstOf(ByClaim("sub"), ByIP()), Everyone(), Manual()}
	for range 2000 {
		var policies []Policy
		for i := range 1 + rng.IntN(4) {
			limit := stores.Limit{Algorithm: stores.Algorithm(rng.IntN(5)), Quota: 1 + rng.IntN(100), Window: time.Duration(1+rng.IntN(1e6)) * time.Millisecond}
			if rng.IntN(2) == 0 {
				limit.Block = time.Duration(1+rng.IntN(1e6)) * time.Millisecond
			}
			policies = append(policies, Policy{
				Name: string(rune('!'+rng.IntN(94))) + `\"` + string(rune('a'+i)), Limit: limit, Key: keys[rng.IntN(len(keys))],
				Mode: Mode(rng.IntN(3)), Outage: stores.Outage(rng.IntN(3)), ShowQuota: rng.IntN(2) == 0,
			})
		}
		b, err := json.Marshal(policies)
		require.NoError(t, err)
		back, err := ParsePolicies(b)
		require.NoError(t, err, "%s", b)
		require.Equal(t, policies, back)
	}
}

// A Policy is as strict in a program's own configuration.
func TestPolicyUnmarshalJSON(t *testing.T) {
	var own struct {
		Port     int
		Policies []Policy
	}
	require.NoError(t, json.Unmarshal([]byte(`{"Port":80,"Policies":[{"name":"a","limit":"5/10m","key":"ip"}]}`), &own))
	require.Equal(t, byIP("a", 5), own.Policies[0])
	for _, text := range []string{`{"name":"a","limit":"5/10m","key":"ip","x":1}`, `{"name":"a","limit":"5/10m"}`, `null`, `[]`, `7`, ` {} `} {
		p := byIP("before", 1)
		require.ErrorIs(t, json.Unmarshal([]byte(`{"Policies":[`+text+`]}`), &own), stores.ErrInvalid, text)
		require.ErrorIs(t, p.UnmarshalJSON([]byte(text)), stores.ErrInvalid, text)
		require.Equal(t, byIP("before", 1), p, "an error changes nothing")
	}
	for _, text := range []string{"", "{", `{"name":}`, "\xff"} {
		require.ErrorIs(t, new(Policy).UnmarshalJSON([]byte(text)), stores.ErrInvalid)
	}
	p := Policy{ShowQuota: true, Mode: Signal, Skip: func(*http.Request) bool { return true }}
	require.NoError(t, json.Unmarshal([]byte(`{"name":"a","limit":"5/10m","key":"ip"}`), &p))
	require.NotNil(t, p.Skip)
	require.False(t, p.ShowQuota)
	require.Equal(t, Enforce, p.Mode)
}

func FuzzParsePolicies(f *testing.F) {
	for _, seed := range []string{
		`[{"name":"a","limit":"5/10m","key":"ip"}]`, `[{"name":"b","limit":"sliding 5/10m block 1h","key":"join(ip,route)","mode":"report","outage":"allow","showQuota":true}]`,
		`[]`, `[{}]`, `[null,{"name":7}]`, `{"a":[{"b":"}"}]}`, `[{"name":"\ud800","limit":"\"","key":"form:\"\\u0041\""}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		policies, err := ParsePolicies(text)
		if err != nil {
			require.ErrorIs(t, err, stores.ErrInvalid)
			require.Nil(t, policies)
			return
		}
		require.NotEmpty(t, policies)
		written, err := json.Marshal(policies)
		if err != nil {
			return // a key whose quotes make it too long to be read again
		}
		again, err := ParsePolicies(written)
		require.NoError(t, err)
		require.Equal(t, policies, again)
		var list []Policy
		require.NoError(t, json.Unmarshal(text, &list))
		require.Equal(t, policies, list)
	})
}
