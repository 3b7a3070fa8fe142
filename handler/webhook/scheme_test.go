package webhook

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

// vector is a delivery whose signature somebody else made.
type vector struct {
	scheme  func(...string) Scheme
	secret  string
	header  http.Header
	body    string
	at      int64
	id      string
	timed   bool
	example string // the header that holds the signature
}

const slackBody = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"

func hmacScheme(secrets ...string) Scheme { return HMAC("X-Signature", secrets...) }

// vectors are those that the senders' own documents and libraries give, where they
// give any: Standard Webhooks' libraries, GitHub's and Slack's documentation. Stripe's has
// none with its secret, so its one is made here.
func vectors() map[string]vector {
	standard := func(prefix string) http.Header {
		h := http.Header{}
		h.Set(prefix+"-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
		h.Set(prefix+"-timestamp", "1614265330")
		h.Set(prefix+"-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
		return h
	}
	const event = `{"id":"evt_1","object":"event"}`
	return map[string]vector{
		"Standard Webhooks": {Standard, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", standard("webhook"), `{"test": 2432232314}`, 1614265330, "msg_p5jXN8AQM9LWM0D4loKWxJek", true, "Webhook-Signature"},
		"Svix":              {Standard, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", standard("svix"), `{"test": 2432232314}`, 1614265330, "msg_p5jXN8AQM9LWM0D4loKWxJek", true, "Svix-Signature"},
		"Stripe": {Stripe, "whsec_test_secret", http.Header{"Stripe-Signature": {
			"t=1495999758,v1=" + hexMAC("whsec_test_secret", "1495999758."+event) + ",v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"}},
			event, 1495999758, "evt_1", true, "Stripe-Signature"},
		"GitHub": {GitHub, "It's a Secret to Everybody", http.Header{"X-Hub-Signature-256": {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}},
			"Hello, World!", 0, "dffd6021bb2bd5b0af676290809ec3a53191dd81c7f70a4b28688a362182986f", false, "X-Hub-Signature-256"},
		"Slack": {Slack, "8f742231b10e8888abcd99yyyzzz85a5", http.Header{
			"X-Slack-Request-Timestamp": {"1531420618"},
			"X-Slack-Signature":         {"v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"}},
			slackBody, 1531420618, digest([]byte(slackBody)), true, "X-Slack-Signature"},
		"HMAC": {hmacScheme, "It's a Secret to Everybody", http.Header{"X-Signature": {"757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}},
			"Hello, World!", 0, "dffd6021bb2bd5b0af676290809ec3a53191dd81c7f70a4b28688a362182986f", false, "X-Signature"},
		"HMAC in base64": {hmacScheme, "It's a Secret to Everybody", http.Header{"X-Signature": {base64.StdEncoding.EncodeToString(mac("It's a Secret to Everybody", "Hello, World!"))}},
			"Hello, World!", 0, "dffd6021bb2bd5b0af676290809ec3a53191dd81c7f70a4b28688a362182986f", false, "X-Signature"},
	}
}

const otherSecret = "whsec_b3RoZXIgc2VjcmV0LCAzMiBieXRlcyBsb25nLCBvciBzbw=="

func TestVectors(t *testing.T) {
	for name, v := range vectors() {
		t.Run(name, func(t *testing.T) {
			at := time.Unix(v.at, 0)
			verify := func(h http.Header, body string, now time.Time, secrets ...string) (string, error) {
				return v.scheme(secrets...).Verify(h, []byte(body), now)
			}
			id, err := verify(v.header, v.body, at, v.secret)
			require.NoError(t, err)
			require.Equal(t, v.id, id)
			for _, secrets := range [][]string{{otherSecret, v.secret}, {v.secret, otherSecret}, {otherSecret, otherSecret, v.secret}} {
				id, err = verify(v.header, v.body, at, secrets...)
				require.NoError(t, err, "one of several secrets")
				require.Equal(t, v.id, id)
			}
			_, err = verify(v.header, v.body, at, otherSecret)
			require.ErrorIs(t, err, errSignature)
			_, err = verify(v.header, v.body+" ", at, v.secret)
			require.ErrorIs(t, err, errSignature)
			_, err = verify(v.header, "", at, v.secret)
			require.ErrorIs(t, err, errSignature)

			for _, off := range []time.Duration{-tolerance, tolerance} {
				_, err = verify(v.header, v.body, at.Add(off), v.secret)
				require.NoError(t, err)
				_, err = verify(v.header, v.body, at.Add(off+off/300), v.secret)
				if v.timed {
					require.ErrorIs(t, err, errTimestamp)
				} else {
					require.NoError(t, err)
				}
			}

			// Each header once, and all of it.
			for header, lines := range v.header {
				for change, with := range map[string][]string{
					"missing": nil, "none": {}, "empty": {""}, "twice": {lines[0], lines[0]}, "second": {"", lines[0]},
					"long": {lines[0] + strings.Repeat(" ", maxField)}, "garbage": {"\x00\xff"},
				} {
					h := v.header.Clone()
					h[header] = with
					_, err = verify(h, v.body, at, v.secret)
					require.Error(t, err, "%s %s", header, change)
				}
				// A single bit anywhere: what is signed, what signs and what frames it. Base64's
				// last characters and hexadecimal's case have several spellings of one value.
				for i := range lines[0] {
					h := v.header.Clone()
					b := []byte(lines[0])
					b[i] ^= 1
					h[header] = []string{string(b)}
					_, err = verify(h, v.body, at, v.secret)
					if i < strings.Index(lines[0]+",v0=", ",v0=") {
						require.Error(t, err, "%s: %q", header, b)
					}
				}
			}
			require.NotContains(t, errHeaders.Error()+errTimestamp.Error()+errSignature.Error(), v.secret)
		})
	}
}

// A sender that changes its secret sends a signature by each, in any order, and others
// of versions to come.
func TestSeveralSignatures(t *testing.T) {
	now := time.Now()
	stamp := strconv.FormatInt(now.Unix(), 10)
	wrong := strings.Repeat("0", 64)
	good := base64.StdEncoding.EncodeToString(mac(keyOf(testSecret), "msg_1."+stamp+".{}"))
	bad := base64.StdEncoding.EncodeToString(make([]byte, 32))
	hexGood := hexMAC("secret", stamp+".{}")
	tests := []struct {
		name, standard, stripe string
		err                    error
	}{
		{"first", "v1," + good + " v1," + bad, "t=" + stamp + ",v1=" + hexGood + ",v1=" + wrong, nil},
		{"last", "v1," + bad + " v1a," + bad + bad + " v2,x v1," + good, "v0=x,v1=" + wrong + ",v2=,v1=" + hexGood + ",t=" + stamp, nil},
		{"spaced", "  v1," + good + " ", "t=" + stamp + ", v1=" + hexGood, nil},
		{"other version", "v1a," + good, "t=" + stamp + ",v0=" + hexGood, errHeaders},
		{"only wrong ones", "v1," + bad + " v1," + bad, "t=" + stamp + ",v1=" + wrong, errSignature},
		{"as many as there may be", strings.Repeat("v1,"+bad+" ", maxSignatures-1) + "v1," + good, "t=" + stamp + strings.Repeat(",v1="+wrong, maxSignatures-2) + ",v1=" + hexGood, nil},
		{"too many", strings.Repeat("v1,"+bad+" ", maxSignatures) + "v1," + good, "t=" + stamp + strings.Repeat(",v1="+wrong, maxSignatures-1) + ",v1=" + hexGood, errHeaders},
		{"cut", "v1," + good[:43], "t=" + stamp + ",v1=" + hexGood[:63], errHeaders},
		{"nothing", "v1,", "t=" + stamp + ",v1=", errHeaders},
		{"no version", good, "t=" + stamp + "," + hexGood, errHeaders},
		{"two times", "v1," + bad, "t=" + stamp + ",t=" + stamp + ",v1=" + hexGood, nil},
		{"two times, the signed one first", "v1," + bad, "t=" + stamp + ",v1=" + hexGood + ",t=0", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {test.standard}, "Stripe-Signature": {test.stripe}}
			_, standard := Standard(testSecret).Verify(h, []byte("{}"), now)
			_, stripe := Stripe("secret").Verify(h, []byte("{}"), now)
			if strings.HasPrefix(test.name, "two times") {
				require.ErrorIs(t, standard, errSignature)
				require.ErrorIs(t, stripe, errHeaders)
				return
			}
			require.ErrorIs(t, standard, test.err)
			require.ErrorIs(t, stripe, test.err)
		})
	}
}

// What is signed is one text of three parts. Whoever moves a border between them has a
// right signature for another id, and so could have a delivery handled again.
func TestIDsCannotBeCutElsewhere(t *testing.T) {
	now := time.Now()
	stamp := strconv.FormatInt(now.Unix(), 10)
	body := stamp + ".5"
	h := signed(testSecret, "msg_1", body, now)
	_, err := Standard(testSecret).Verify(h, []byte(body), now)
	require.NoError(t, err)
	h.Set("webhook-id", "msg_1."+stamp)
	_, err = Standard(testSecret).Verify(h, []byte("5"), now)
	require.ErrorIs(t, err, errHeaders)
}

func TestTimesAreDigits(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, text := range []string{"", "+1700000000", "-1", " 1700000000", "1700000000.0", "1.7e9", "0x6553f100", "17_0", "1700000000000", strings.Repeat("9", 40), "\u0661"} {
		require.ErrorIs(t, checkTime(text, now), errHeaders, text)
	}
	require.ErrorIs(t, checkTime("999999999999", now), errTimestamp)
	require.ErrorIs(t, checkTime("0", now), errTimestamp)
	require.NoError(t, checkTime("001700000000", now))
}

// What names the version of a signature has to be there, or the next version's would be
// taken for this one's.
func TestVersionsAreNamed(t *testing.T) {
	for _, name := range []string{"GitHub", "Slack"} {
		v := vectors()[name]
		whole := v.header.Get(v.example)
		_, value, _ := strings.Cut(whole, "=")
		for _, text := range []string{value, "=" + value, "v1=" + value, "sha1=" + value, strings.ToUpper(whole[:3]) + whole[3:], whole + "," + whole} {
			v.header.Set(v.example, text)
			_, err := v.scheme(v.secret).Verify(v.header, []byte(v.body), time.Unix(v.at, 0))
			require.ErrorIs(t, err, errHeaders, text)
		}
	}
}

func TestEventIDs(t *testing.T) {
	tests := []struct{ body, id string }{
		{`{"id":"evt_1"}`, "evt_1"},
		{`{"ID":"evt_1"}`, ""},
		{`{"data":{"id":"evt_1"}}`, ""},
		{`{"id":7}`, ""},
		{`{"id":null}`, ""},
		{`{"id":""}`, ""},
		{`{"id":"a","id":"b"}`, "b"},
		{`{"id":"evt_1"`, ""},
		{`["id"]`, ""},
		{``, ""},
		{`null`, ""},
		{strings.Repeat(`{"id":`, 100_000), ""},
		{`{"id":"\u0000\ud800"}`, "\x00\ufffd"},
	}
	for _, test := range tests {
		want := test.id
		if want == "" {
			want = digest([]byte(test.body))
		}
		require.Equal(t, want, eventID([]byte(test.body), "id"), "%.40s", test.body)
	}
}

func TestBadSecrets(t *testing.T) {
	const marker = "k7Lq2"
	base := base64.StdEncoding.EncodeToString
	tests := map[string]Scheme{
		"none":                 Standard(),
		"too many":             GitHub(strings.Split(strings.Repeat(marker+" ", 9), " ")[:9]...),
		"empty":                Stripe(""),
		"one of them empty":    Slack(marker, ""),
		"line break":           GitHub(marker + "\n"),
		"space":                HMAC("X-Signature", " "+marker),
		"no base64":            Standard("whsec_" + marker + "*"),
		"prefix alone":         Standard("whsec_"),
		"short":                Standard("whsec_" + base([]byte(strings.Repeat("x", 23)))),
		"public key":           Standard("whpk_" + base(make([]byte, 32))),
		"no header":            HMAC("", marker),
		"header with a colon":  HMAC("X-Signature:", marker),
		"header with a letter": HMAC("X-Signatur\u00e9", marker),
		"neither":              HMAC("", ""),
	}
	for name, scheme := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Scheme: scheme}, (&counter{}).handle)
			require.ErrorIs(t, err, stores.ErrInvalid)
			require.NotContains(t, err.Error(), marker)
			// And whoever uses it all the same gets nothing through, not even with the key
			// that an empty secret would be.
			h := signed("whsec_", "msg_1", "{}", time.Now())
			h.Set("X-Hub-Signature-256", "sha256="+hexMAC("", "{}"))
			h.Set("X-Signature", hexMAC("", "{}"))
			h.Set("Stripe-Signature", "t="+h.Get("webhook-timestamp")+",v1="+hexMAC("", h.Get("webhook-timestamp")+".{}"))
			_, err = scheme.Verify(h, []byte("{}"), time.Now())
			require.Error(t, err)
		})
	}
}

func TestImpossibleConfig(t *testing.T) {
	good := Config{Scheme: Standard(testSecret)}
	handle := (&counter{}).handle
	_, err := New(good, handle)
	require.NoError(t, err)
	for name, change := range map[string]func(*Config){
		"no scheme":           func(c *Config) { c.Scheme = nil },
		"nil scheme":          func(c *Config) { c.Scheme = (*standard)(nil) },
		"replay too short":    func(c *Config) { c.Replay = 10*time.Minute - 1 },
		"replay negative":     func(c *Config) { c.Replay = -time.Hour },
		"replay far too long": func(c *Config) { c.Replay = 11 * 365 * 24 * time.Hour },
		"negative body":       func(c *Config) { c.MaxBody = -1 },
	} {
		cfg := good
		change(&cfg)
		_, err := New(cfg, handle)
		require.ErrorIs(t, err, stores.ErrInvalid, name)
		require.True(t, strings.HasPrefix(err.Error(), "webhook: "), err)
	}
	_, err = New(good, nil)
	require.ErrorIs(t, err, stores.ErrInvalid)
	good.Replay = 10 * time.Minute
	_, err = New(good, handle)
	require.NoError(t, err)
}

// The ids of two senders of one scheme are apart, so that neither can have the other's
// delivery taken for handled; and a second secret changes nothing.
func TestScopes(t *testing.T) {
	scope := func(s Scheme) string { return s.(interface{ scope() string }).scope() }
	require.NotEqual(t, scope(Standard(testSecret)), scope(Standard(otherSecret)))
	require.Equal(t, scope(Standard(testSecret)), scope(Standard(testSecret, otherSecret)))
	require.NotEqual(t, scope(Stripe("secret")), scope(Slack("secret")))
	require.NotContains(t, scope(Stripe("secret")), "secret")
	require.NotEmpty(t, scope(Stripe()))
}

var errCustom = errors.New("the reason of a scheme")

// custom is a user's own Scheme.
type custom func(h http.Header, body []byte, now time.Time) (string, error)

func (c custom) Verify(h http.Header, body []byte, now time.Time) (string, error) {
	return c(h, body, now)
}
