package handler

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

var limitForFuzz = stores.FixedWindow(1<<40, time.Hour)

func TestByJSON(t *testing.T) {
	plain, nested := bodyReader(t, ByJSON("email"), "email"), bodyReader(t, ByJSON("user.email"), "user.email")
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	tooDeep := strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)
	for name, tt := range map[string]struct {
		read   func(*http.Request) reading
		kind   string
		body   string
		status int
		value  string
		absent bool
	}{
		"text":               {plain, jsonType, `{"email":"a"}`, 204, "a", false},
		"spaces":             {plain, jsonType, " \n{ \"b\" : [ 1 , {\"email\":2} ] ,\t\"email\" : \"a\" }\r\n", 204, "a", false},
		"escapes":            {plain, jsonType, `{"\u0065mail":"\u0061\"\\\/\ud83d\ude00"}`, 204, "a\"\\/😀", false},
		"another spelling":   {plain, jsonType, `{"EMail":"a"}`, 204, "a", false},
		"charset":            {plain, jsonType + "; charset=utf-8", `{"email":"a"}`, 204, "a", false},
		"problem":            {plain, "application/scim+json", `{"email":"a"}`, 204, "a", false},
		"number":             {plain, jsonType, `{"email":7}`, 204, "7", false},
		"minus":              {plain, jsonType, `{"email":-7}`, 204, "-7", false},
		"zero":               {plain, jsonType, `{"email":0}`, 204, "0", false},
		"largest":            {plain, jsonType, `{"email":9007199254740991}`, 204, "9007199254740991", false},
		"true":               {plain, jsonType, `{"email":true}`, 204, "true", false},
		"false":              {plain, jsonType, `{"email":false,"a":1}`, 204, "false", false},
		"deep elsewhere":     {plain, jsonType, `{"a":` + deep + `,"email":"a"}`, 204, "a", false},
		"braces in texts":    {plain, jsonType, `{"a":"}\"","b":"{[","email":"a"}`, 204, "a", false},
		"nested":             {nested, jsonType, `{"email":"b","user":{"name":"c","email":"a"}}`, 204, "a", false},
		"nested spelling":    {nested, jsonType, `{"USER":{"Email":"a"}}`, 204, "a", false},
		"absent":             {plain, jsonType, `{"mail":"a","b":{"email":"c"}}`, 204, "", true},
		"empty object":       {plain, jsonType, `{}`, 204, "", true},
		"null member":        {plain, jsonType, `{"email":null}`, 204, "", true},
		"null body":          {plain, jsonType, `null`, 204, "", true},
		"empty text":         {plain, jsonType, `{"email":""}`, 204, "", true},
		"blank text":         {plain, jsonType, `{"email":" \t"}`, 204, " \t", true},
		"no body":            {plain, jsonType, "", 204, "", true},
		"no body, any type":  {plain, "text/plain", "", 204, "", true},
		"nested absent":      {nested, jsonType, `{"email":"a","user":{}}`, 204, "", true},
		"nested null":        {nested, jsonType, `{"user":null}`, 204, "", true},
		"a dot in the name":  {nested, jsonType, `{"user.email":"a"}`, 204, "", true},
		"prefix":             {plain, jsonType, `{"email2":"a","emai":"b"}`, 204, "", true},
		"twice":              {plain, jsonType, `{"email":"a","email":"b"}`, 400, "", false},
		"twice alike":        {plain, jsonType, `{"email":"a","b":1,"email":"a"}`, 400, "", false},
		"twice, null":        {plain, jsonType, `{"email":null,"email":"a"}`, 400, "", false},
		"two spellings":      {plain, jsonType, `{"email":"a","EMAIL":"b"}`, 400, "", false},
		"escaped spelling":   {plain, jsonType, `{"email":"a","\u0065mail":"b"}`, 400, "", false},
		"long s":             {bodyReader(t, ByJSON("sid"), "sid"), jsonType, `{"sid":"a","ſid":"b"}`, 400, "", false},
		"parent twice":       {nested, jsonType, `{"user":{"email":"a"},"User":{}}`, 400, "", false},
		"list":               {plain, jsonType, `{"email":["a"]}`, 400, "", false},
		"object":             {plain, jsonType, `{"email":{"a":"b"}}`, 400, "", false},
		"parent is a text":   {nested, jsonType, `{"user":"email"}`, 400, "", false},
		"parent is a list":   {nested, jsonType, `{"user":[{"email":"a"}]}`, 400, "", false},
		"list of bodies":     {plain, jsonType, `[{"email":"a"}]`, 400, "", false},
		"text alone":         {plain, jsonType, `"email"`, 400, "", false},
		"number alone":       {plain, jsonType, `1`, 400, "", false},
		"fraction":           {plain, jsonType, `{"email":1.0}`, 400, "", false},
		"exponent":           {plain, jsonType, `{"email":1e0}`, 400, "", false},
		"minus zero":         {plain, jsonType, `{"email":-0}`, 400, "", false},
		"too large":          {plain, jsonType, `{"email":9007199254740992}`, 400, "", false},
		"too small":          {plain, jsonType, `{"email":-9007199254740992}`, 400, "", false},
		"far too large":      {plain, jsonType, `{"email":1` + strings.Repeat("0", 400) + `}`, 400, "", false},
		"lone surrogate":     {plain, jsonType, `{"email":"a\ud800"}`, 400, "", false},
		"no UTF-8":           {plain, jsonType, "{\"email\":\"a\xff\"}", 400, "", false},
		"no UTF-8 elsewhere": {plain, jsonType, "{\"email\":\"a\",\"b\":\"\xff\"}", 400, "", false},
		"NUL":                {plain, jsonType, `{"email":"a\u0000"}`, 400, "", false},
		"garbage behind":     {plain, jsonType, `{"email":"a"}{"email":"b"}`, 400, "", false},
		"garbage before":     {plain, jsonType, "\ufeff" + `{"email":"a"}`, 400, "", false},
		"comma behind":       {plain, jsonType, `{"email":"a",}`, 400, "", false},
		"cut short":          {plain, jsonType, `{"email":"a"`, 400, "", false},
		"space alone":        {plain, jsonType, " ", 400, "", false},
		"comment":            {plain, jsonType, `{/**/"email":"a"}`, 400, "", false},
		"too deep":           {plain, jsonType, `{"a":` + tooDeep + `,"email":"a"}`, 400, "", false},
		"other type":         {plain, "text/plain", `{"email":"a"}`, 400, "", false},
		"no type":            {plain, "", `{"email":"a"}`, 400, "", false},
		"lines":              {plain, "application/x-ndjson", `{"email":"a"}`, 400, "", false},
		"form":               {plain, formType, `email=a`, 400, "", false},
		"utf-16":             {plain, jsonType + "; charset=utf-16", `{"email":"a"}`, 400, "", false},
		"in the query":       {func(r *http.Request) reading { r.URL.RawQuery = "email=b"; return plain(r) }, jsonType, `{"email":"a"}`, 400, "", false},
		"in the query alone": {func(r *http.Request) reading { r.URL.RawQuery = "EMAIL[]=b"; return plain(r) }, jsonType, `{}`, 400, "", false},
		"other query":        {func(r *http.Request) reading { r.URL.RawQuery = "q=%&mail=a;b"; return plain(r) }, jsonType, `{"email":"a"}`, 204, "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			none := tt.read(post(jsonType, ""))
			require.Equal(t, 204, none.status)
			noIdentity := none.key
			got := tt.read(post(tt.kind, tt.body))
			require.Equal(t, tt.status, got.status)
			if tt.status != 204 {
				require.Empty(t, got.key)
				return
			}
			require.Equal(t, tt.body, got.body)
			require.Equal(t, tt.value, got.value)
			require.Equal(t, tt.absent, got.key == noIdentity)
		})
	}
	require.Equal(t, 400, plain(post(jsonType, `{"email":"a"}`, "Content-Encoding", "gzip")).status)
}

// FuzzByJSON holds the key against encoding/json, into a struct and into a map.
func FuzzByJSON(f *testing.F) {
	for _, seed := range []string{
		`{"user":{"email":"a"}}`, `{"User":{"EMAIL":1},"a":[{}]}`, `{"user":{"email":"a","\u0065mail":"b"}}`, `{"user":null}`, `null`, `[]`,
		`{"user":{"email":"\ud800"}}`, "{\"user\":{\"email\":\"\xff\"}}", `{"a":"}\"","user":{"b":{"c":[1,2]},"email":true}}`, `{"user":{"email":-0}}`, `{}{}`,
	} {
		f.Add(seed)
	}
	g := onMemory(f, Policy{Name: "p", Limit: limitForFuzz, Key: ByJSON("user.email")})
	f.Fuzz(func(t *testing.T, body string) {
		w := serve(g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			value, there := KeyValue(r.Context(), "user.email")
			b, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, body, string(b))
			if body == "" {
				return
			}
			var typed struct {
				User struct {
					Email any `json:"email"`
				} `json:"user"`
			}
			decoder := json.NewDecoder(strings.NewReader(body))
			decoder.UseNumber()
			require.NoError(t, decoder.Decode(&typed), "what the handler could not read is refused")
			same := func(got any) {
				switch got := got.(type) {
				case nil:
					require.False(t, there)
				case string:
					require.Equal(t, got, value)
				case json.Number:
					require.Equal(t, got.String(), value)
				case bool:
					require.Equal(t, got, value == "true")
				default:
					require.Fail(t, "a value that is none")
				}
			}
			same(typed.User.Email)
			var loose map[string]any
			decoder = json.NewDecoder(strings.NewReader(body))
			decoder.UseNumber()
			require.NoError(t, decoder.Decode(&loose))
			if user, ok := loose["user"].(map[string]any); ok && user["email"] != nil {
				same(user["email"])
			}
		})), post(jsonType, body))
		require.Contains(t, []int{200, 400, 413}, w.Code)
	})
}
