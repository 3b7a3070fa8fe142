package handler

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// multipartOf makes a form of names and values; a name that begins with "@" is a file's.
func multipartOf(t testing.TB, parts ...string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		var part io.Writer
		var err error
		if name, isFile := strings.CutPrefix(parts[i], "@"); isFile {
			part, err = w.CreateFormFile(name, "a.txt")
		} else {
			part, err = w.CreateFormField(name)
		}
		require.NoError(t, err)
		_, err = io.WriteString(part, parts[i+1])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.String(), w.FormDataContentType()
}

// partOf makes a form of one part with the given header.
func partOf(t testing.TB, value string, header ...string) *http.Request {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	h := textproto.MIMEHeader{}
	for i := 0; i < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	part, err := w.CreatePart(h)
	require.NoError(t, err)
	_, err = io.WriteString(part, value)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return post(w.FormDataContentType(), b.String())
}

func TestByForm(t *testing.T) {
	read := bodyReader(t, ByForm("email"), "email")
	multi := func(parts ...string) *http.Request {
		body, kind := multipartOf(t, parts...)
		return post(kind, body)
	}
	get := func(query string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.RawQuery, r.RemoteAddr = query, client
		return r
	}
	const noBoundary = "--\r\nContent-Disposition: form-data; name=\"email\"\r\n\r\na\r\n----\r\n"
	disposition := func(value string) *http.Request {
		return partOf(t, "a", "Content-Disposition", value)
	}
	const named = `form-data; name="email"`
	body, kind := multipartOf(t, "email", "a")
	const (
		part   = "Content-Disposition: " + named + "\r\n\r\na"
		victim = "Content-Disposition: " + named + "\r\n\r\nb"
	)
	within := func(other string) *http.Request {
		return post("multipart/form-data; boundary=x", "--x\r\n"+part+"\r\n--x\r\nContent-Disposition: form-data; name=\"y\"\r\n\r\n"+other+"\r\n--x--\r\n")
	}
	beside := func(disposition string) *http.Request {
		return post("multipart/form-data; boundary=x", "--x\r\n"+part+"\r\n--x\r\nContent-Disposition: "+disposition+"\r\n\r\nb\r\n--x--\r\n")
	}
	for name, tt := range map[string]struct {
		r      *http.Request
		status int // 204: passed
		value  string
		absent bool // no identity
	}{
		"body":                      {post(formType, "email=a"), 204, "a", false},
		"among others":              {post(formType, "a=1&email=a&b=2&"), 204, "a", false},
		"query":                     {get("email=a"), 204, "a", false},
		"query of a post":           {withBody("/?email=a", formType, "b=1"), 204, "a", false},
		"query, no body":            {withBody("/?email=a", "text/plain", ""), 204, "a", false},
		"multipart":                 {multi("b", "1", "email", "a"), 204, "a", false},
		"multipart beside a file":   {multi("@file", "email=b", "email", "a"), 204, "a", false},
		"escapes":                   {post(formType, "%65mail=a%2Bb+c%40d"), 204, "a+b c@d", false},
		"lower escapes":             {post(formType, "email=%2b%c3%a4"), 204, "+ä", false},
		"no equals sign":            {post(formType, "email"), 204, "", true},
		"equals signs":              {post(formType, "email=a=b"), 204, "a=b", false},
		"another spelling":          {post(formType, "EMail=a"), 204, "a", false},
		"as a list":                 {post(formType, "email[]=a"), 204, "a", false},
		"as an element":             {post(formType, "email%5B0%5D=a"), 204, "a", false},
		"charset":                   {post(formType+"; charset=UTF-8", "email=a"), 204, "a", false},
		"charset in quotes":         {post(formType+`;charset="utf-8"`, "email=a"), 204, "a", false},
		"type in capitals":          {post("APPLICATION/X-WWW-FORM-URLENCODED", "email=a"), 204, "a", false},
		"not encoded":               {post(formType, "email=a", "Content-Encoding", "identity"), 204, "a", false},
		"empty":                     {post(formType, "email="), 204, "", true},
		"blank":                     {post(formType, "email=+%09"), 204, " \t", true},
		"absent":                    {post(formType, "mail=a"), 204, "", true},
		"no body":                   {post(formType, ""), 204, "", true},
		"no body, no type":          {get(""), 204, "", true},
		"no body, any type":         {post("image/png", "", "Content-Encoding", "gzip"), 204, "", true},
		"longer name":               {post(formType, "email2=a&myemail=b&email.x=c&email[x]=d&email[=e&email]=f&[email]=g"), 204, "", true},
		"multipart, absent":         {multi("mail", "a"), 204, "", true},
		"multipart, empty":          {multi("email", ""), 204, "", true},
		"method without form":       {method("DELETE", post(formType, "email=a")), 204, "a", false},
		"broken query elsewhere":    {withBody("/?q=100%&a;b", formType, "email=a"), 204, "a", false},
		"quoted printable":          {partOf(t, "a=40b", "Content-Disposition", named, "Content-Transfer-Encoding", "quoted-printable"), 204, "a@b", false},
		"8bit part":                 {partOf(t, "ä", "Content-Disposition", named, "Content-Transfer-Encoding", "8BIT", "Content-Type", "text/plain; charset=utf-8"), 204, "ä", false},
		"twice":                     {post(formType, "email=a&email=b"), 400, "", false},
		"twice alike":               {post(formType, "email=a&email=a"), 400, "", false},
		"twice, one empty":          {post(formType, "email=&email=a"), 400, "", false},
		"two spellings":             {post(formType, "email=a&Email=b"), 400, "", false},
		"escaped spelling":          {post(formType, "email=a&%45mail=b"), 400, "", false},
		"beside a list":             {post(formType, "email=a&email[]=b"), 400, "", false},
		"beside an element":         {post(formType, "email=a&email[12]=b"), 400, "", false},
		"query and body":            {withBody("/?email=a", formType, "email=b"), 400, "", false},
		"query and body, spelt":     {withBody("/?EMAIL[]=a", formType, "email=a"), 400, "", false},
		"twice in the query":        {get("email=a&email=b"), 400, "", false},
		"query and multipart":       {withBody("/?email=a", kind, body), 400, "", false},
		"multipart twice":           {multi("email", "a", "email", "b"), 400, "", false},
		"multipart file":            {multi("@email", "a"), 400, "", false},
		"multipart file besides":    {multi("email", "a", "@EMAIL", "b"), 400, "", false},
		"semicolon":                 {post(formType, "a=1;email=b&email=a"), 400, "", false},
		"semicolon in the query":    {withBody("/?a=1;email=b", formType, "email=a"), 400, "", false},
		"semicolon, escaped":        {get("a=1;%65mail=b"), 400, "", false},
		"bad escape":                {post(formType, "email=%zz"), 400, "", false},
		"bad escape elsewhere":      {post(formType, "a=%&email=a"), 400, "", false},
		"bad escape in the query":   {get("email=%zz"), 400, "", false},
		"bad escape in a name":      {get("email%=a"), 204, "", true},
		"other type":                {post("text/plain", "email=a"), 400, "", false},
		"JSON":                      {post(jsonType, `{"email":"a"}`), 400, "", false},
		"JSON and query":            {withBody("/?email=a", jsonType, `{"email":"a"}`), 400, "", false},
		"no type":                   {post("", "email=a"), 400, "", false},
		"bad type":                  {post(formType+"; a", "email=a"), 400, "", false},
		"two types":                 {post(formType, "email=a", "Content-Type", jsonType), 400, "", false},
		"type twice":                {post(formType, "email=a", "Content-Type", formType), 400, "", false},
		"other charset":             {post(formType+"; charset=utf-16", "email=a"), 400, "", false},
		"latin":                     {post(formType+"; charset=iso-8859-1", "email=a"), 400, "", false},
		"gzip":                      {post(formType, "email=a", "Content-Encoding", "gzip"), 400, "", false},
		"second encoding":           {post(formType, "email=a", "Content-Encoding", "identity", "Content-Encoding", "br"), 400, "", false},
		"no boundary":               {post("multipart/form-data", body), 400, "", false},
		"without boundary":          {post("multipart/form-data", noBoundary), 400, "", false},
		"empty boundary":            {post(`multipart/form-data; boundary=""`, noBoundary), 400, "", false},
		"other boundary":            {post("multipart/form-data; boundary=x", body), 400, "", false},
		"mixed":                     {post(strings.Replace(kind, "form-data", "mixed", 1), body), 400, "", false},
		"multipart cut short":       {post(kind, body[:len(body)-8]), 400, "", false},
		"part without a name":       {disposition("form-data"), 400, "", false},
		"part with two names":       {disposition(`form-data; name="a"; name="email"`), 400, "", false},
		"part of another kind":      {disposition(`attachment; name="email"`), 400, "", false},
		"part in base64":            {partOf(t, "YQ==", "Content-Disposition", named, "Content-Transfer-Encoding", "base64"), 400, "", false},
		"part in another charset":   {partOf(t, "a", "Content-Disposition", named, "Content-Type", "text/plain; charset=utf-7"), 400, "", false},
		"part of no type":           {partOf(t, "a", "Content-Disposition", named, "Content-Type", ";"), 400, "", false},
		"boundary, other line end":  {within("1\n--x\n" + victim), 400, "", false},
		"boundary, begun":           {within("1\r\n--xy\r\n" + victim), 400, "", false},
		"boundary behind the end":   {post("multipart/form-data; boundary=x", "--x\r\n"+part+"\r\n--x--\r\n--x\r\n"+victim+"\r\n--x--\r\n"), 400, "", false},
		"boundary, not of a line":   {within("1 --x"), 204, "a", false},
		"text around the parts":     {post("multipart/form-data; boundary=x", "before\r\n--x\r\n"+part+"\r\n--x--\r\nbehind"), 204, "a", false},
		"line ends of LF alone":     {post("multipart/form-data; boundary=x", strings.ReplaceAll("--x\r\n"+part+"\r\n--x--\r\n", "\r", "")), 204, "a", false},
		"second name, extended":     {beside(`form-data; name="email"; name*=utf-8''y`), 400, "", false},
		"second name, extended, 2":  {beside(`form-data; filename="a;\"b"; NAME*0*=utf-8''y; name=email`), 400, "", false},
		"second name, single quote": {beside(`form-data; name='email'`), 400, "", false},
		"extended file name":        {beside(`form-data; name="y"; filename="name*"; filename*=utf-8''%c3%a4`), 204, "a", false},
		"second boundary, extended": {post("multipart/form-data; boundary=z; boundary*=us-ascii''x", "--z\r\n"+victim+"\r\n--z--\r\n--x\r\n"+part+"\r\n--x--\r\n"), 400, "", false},
		"second disposition":        {partOf(t, "a", "Content-Disposition", `form-data; name="y"`, "Content-Disposition", named), 400, "", false},
		"second type of a part":     {partOf(t, "a", "Content-Disposition", named, "Content-Type", "text/plain", "Content-Type", "text/plain; charset=utf-7"), 400, "", false},
		"second encoding of a part": {partOf(t, "a", "Content-Disposition", named, "Content-Transfer-Encoding", "8bit", "Content-Transfer-Encoding", "base64"), 400, "", false},
		"beside a space":            {post(formType, "email=a&+%20email=b"), 400, "", false},
		"beside a NUL":              {post(formType, "email=a&email%00x=b"), 400, "", false},
		"beside both in the query":  {withBody("/?+email[0]%00=b", formType, "email=a"), 400, "", false},
		"no UTF-8":                  {post(formType, "email=a%ff"), 400, "", false},
		"no UTF-8, raw":             {post(formType, "email=a\xff"), 400, "", false},
		"overlong":                  {post(formType, "email=%c0%af"), 400, "", false},
		"NUL":                       {post(formType, "email=a%00b"), 400, "", false},
		"replacement":               {post(formType, "email=a%ef%bf%bd"), 400, "", false},
		"NUL in multipart":          {multi("email", "a\x00"), 400, "", false},
		"awkward bytes are his":     {post(formType, "email=%22%5C%2F%7Ba%7D%0D%0A%E2%80%AE"), 204, "\"\\/{a}\r\n\u202e", false},
		"other fields are not ours": {post(formType, "b=%ff%00&email=a&c=1&c=2"), 204, "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			none := read(get(""))
			require.Equal(t, 204, none.status)
			noIdentity := none.key
			want := ""
			if tt.r.Body != nil {
				b, err := io.ReadAll(tt.r.Body)
				require.NoError(t, err)
				want = string(b)
				tt.r.Body = io.NopCloser(strings.NewReader(want))
			}
			got := read(tt.r)
			require.Equal(t, tt.status, got.status)
			if tt.status != 204 {
				require.Empty(t, got.key)
				return
			}
			require.Equal(t, want, got.body)
			require.Equal(t, tt.value, got.value)
			require.Equal(t, tt.absent, got.key == noIdentity)
			if !tt.absent {
				require.True(t, got.there)
			}
		})
	}
}

// Names that PHP takes for one with an underscore are spellings of it, and of no other.
func TestFormUnderscore(t *testing.T) {
	read := bodyReader(t, ByForm("user_mail"), "user_mail")
	for _, name := range []string{"user.mail", "user+mail", "+User.Mail", "user.mail[]", "user_mail"} {
		require.Equal(t, 400, read(post(formType, "user_mail=a&"+name+"=b")).status, name)
	}
	for _, name := range []string{"user-mail", "usermail", "user.mail.", "user..mail", "user_mail_x"} {
		got := read(post(formType, "user_mail=a&"+name+"=b"))
		require.Equal(t, 204, got.status, name)
		require.Equal(t, "a", got.value)
	}
}

// The value, not its writing, is the identity, and never another field's.
func TestFormIdentities(t *testing.T) {
	read := bodyReader(t, ByForm("email"), "email")
	body, kind := multipartOf(t, "email", "a b")
	keys := map[string]bool{}
	for _, r := range []*http.Request{
		post(formType, "email=a+b"), post(formType, "email=a%20b"), post(formType, "%65mail=%61%20b"),
		withBody("/?email=a+b", "", ""), post(kind, body), method("PUT", post(formType, "email=a+b")),
	} {
		keys[read(r).key] = true
	}
	require.Len(t, keys, 1)
	for _, value := range []string{"a", "A", "a%2520b", "ab", "a++b", "a%2B", "+a", "203.0.113.9"} {
		keys[read(post(formType, "email="+value)).key] = true
	}
	require.Len(t, keys, 9)
}

// FuzzByForm holds the key against net/http: what passes is what a handler reads with
// FormValue, and a request of which the two would read different things is refused.
func FuzzByForm(f *testing.F) {
	body, kind := multipartOf(f, "email", "a", "@file", "b", "Email", "c")
	for _, seed := range [][3]string{
		{"email=a", formType, "b=1"}, {"", formType, "email=a&email=b"}, {"a;email=b", formType, "%65mail=a%ff"}, {"", kind, body},
		{"", kind, body[:len(body)/2]}, {"q=%", "", "email=a"}, {"", jsonType, "{}"}, {"email[]=1", formType + "; charset=x", "email=%00"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	g := onMemory(f, Policy{Name: "p", Limit: limitForFuzz, Key: ByForm("email")})
	f.Fuzz(func(t *testing.T, query, contentType, body string) {
		request := func() *http.Request {
			r := post("", body)
			r.Header["Content-Type"] = []string{contentType}
			r.URL.RawQuery = query
			return r
		}
		w := serve(g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			value, there := KeyValue(r.Context(), "email")
			b, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, body, string(b))
			same := request()
			_ = same.ParseMultipartForm(1 << 20) // reads what can be read, as FormValue does
			values := same.Form["email"]
			require.LessOrEqual(t, len(values), 1)
			if len(values) == 1 {
				require.True(t, there)
				require.Equal(t, values[0], value)
			}
			if same.MultipartForm != nil {
				require.Empty(t, same.MultipartForm.File["email"])
			}
		})), request())
		require.Contains(t, []int{200, 400, 413}, w.Code)
	})
}
