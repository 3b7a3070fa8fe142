package form

import (
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTokenAges(t *testing.T) {
	made := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name    string
		minFill time.Duration
		after   time.Duration
		want    age
		wait    time.Duration
	}{
		{"at once", 0, 0, ageYoung, 1500 * time.Millisecond},
		{"a little too fast", 0, 1499 * time.Millisecond, ageYoung, time.Millisecond},
		{"the slack is let off", 0, 1500 * time.Millisecond, ageRight, 0},
		{"as told", 0, 2 * time.Second, ageRight, 0},
		{"late, but in time", 0, 2 * time.Hour, ageRight, 0},
		{"too late", 0, 2*time.Hour + time.Millisecond, ageOld, 0},
		{"centuries later", 0, 1 << 62, ageOld, 0},
		{"by a clock that is a little behind", 0, -500 * time.Millisecond, ageYoung, 2 * time.Second},
		{"by a clock that is far behind", 0, -501 * time.Millisecond, ageFuture, 0},
		{"by a clock that was set back", 0, -24 * time.Hour, ageFuture, 0},
		{"centuries before", 0, -(1 << 62), ageFuture, 0},
		{"short fill", 100 * time.Millisecond, 74 * time.Millisecond, ageYoung, time.Millisecond},
		{"short fill, slack", 100 * time.Millisecond, 75 * time.Millisecond, ageRight, 0},
		{"none", -1, 0, ageRight, 0},
		{"none, by a clock that is a little behind", -1, -500 * time.Millisecond, ageRight, 0},
		{"none, by a clock that is far behind", -1, -501 * time.Millisecond, ageFuture, 0},
		{"hardly any", time.Nanosecond, 0, ageYoung, time.Millisecond},
		{"hardly any, next tick", time.Nanosecond, time.Millisecond, ageRight, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newSite(t, Config{MinFill: test.minFill})
			token, ok := f.parse(f.mint(kindFirst, made))
			require.True(t, ok)
			got, wait := f.judge(token, made.Add(test.after))
			require.Equal(t, test.want, got)
			require.Equal(t, test.wait, wait)
			if got == ageYoung {
				got, _ = f.judge(token, made.Add(test.after).Add(wait))
				require.Equal(t, ageRight, got, "waiting as told is enough")
			}
		})
	}
}

// Not one bit of a token can be changed, and no token can be used where it is not from.
func TestTokenIsForgeryProof(t *testing.T) {
	f := newSite(t, Config{})
	now := time.Now()
	text := f.mint(kindFirst, now)
	_, ok := f.parse(text)
	require.True(t, ok)
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i := range text {
		for _, c := range letters + "+/=\r\n \x00" {
			if forged := text[:i] + string(c) + text[i+1:]; forged != text {
				_, ok := f.parse(forged)
				require.False(t, ok, "%q", forged)
			}
		}
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	require.NoError(t, err)
	for i := range raw {
		for bit := range 8 {
			forged := append([]byte(nil), raw...)
			forged[i] ^= 1 << bit
			_, ok := f.parse(base64.RawURLEncoding.EncodeToString(forged))
			require.False(t, ok)
		}
	}
	// A kind that this release does not know is nobody's, though the secret signed it.
	payload := append([]byte{3}, raw[1:payloadSize]...)
	_, ok = f.parse(tokenText.EncodeToString(append(payload, f.keys[0].sign(payload)...)))
	require.False(t, ok)

	for _, cfg := range []Config{
		{ID: "other"}, {ID: "contacT"}, {ID: "contac"}, {ID: "contact2"}, {Secret: []byte(strings.ToUpper(string(secret)))}, {Secret: secret[:31]},
	} {
		other := newSite(t, cfg)
		_, ok := other.parse(text)
		require.False(t, ok)
		_, ok = f.parse(other.mint(kindFirst, now))
		require.False(t, ok)
	}
	for _, text := range []string{"", "x", text + "A", text + "=", text[1:], " " + text, text + "\n", strings.Repeat("A", 1<<20)} {
		_, ok := f.parse(text)
		require.False(t, ok)
	}
}

func TestTokensDiffer(t *testing.T) {
	f := newSite(t, Config{})
	now, seen := time.Now(), map[string]bool{}
	for range 1000 {
		token, ok := f.parse(f.mint(kindFirst, now))
		require.True(t, ok)
		require.False(t, seen[token.id])
		seen[token.id] = true
	}
}

// A secret is changed in three steps, and at none of them an instance that is ahead or
// behind turns a person away, or loses sight of the honeypot.
func TestSecretIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := []byte("fedcba9876543210fedcba9876543210")
		steps := []Config{
			{Secret: secret},
			{Secret: secret, OldSecrets: [][]byte{next}},
			{Secret: next, OldSecrets: [][]byte{secret}},
			{Secret: next},
		}
		for i := range steps[1:] {
			before, after := newSite(t, steps[i]), newSite(t, steps[i+1])
			for _, pair := range [][2]*site{{before, after}, {after, before}} {
				if i == 2 && pair[1] == after {
					// The last step comes when all older tokens have ended.
					pair[0] = after
				}
				values := pair[0].filled(t)
				time.Sleep(3 * time.Second)
				require.Equal(t, 303, pair[1].serve(request(values)).Code)
				require.Equal(t, 1, pair[1].next.count())
				values.Set(pair[0].keys[0].honeypot, "spam")
				require.Equal(t, 303, pair[1].serve(request(values)).Code)
				require.Equal(t, 1, pair[1].next.count(), "step %d", i)
				pair[1].next.got = nil
			}
		}
	})
}

func FuzzToken(f *testing.F) {
	form := newSite(f, Config{OldSecrets: [][]byte{[]byte("fedcba9876543210")}})
	made := time.UnixMilli(1_700_000_000_000)
	good := form.mint(kindFirst, made)
	for _, seed := range []string{good, form.mint(kindAgain, made), "", "AQ", good + "=", good[:70] + "\n", strings.Repeat("_", 71), strings.Repeat("A", 71)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, ok := form.parse(text)
		if !ok {
			require.Zero(t, token)
			return
		}
		// One text stands for one token, and only seeds are signed.
		require.Len(t, token.id, payloadSize)
		raw, err := base64.RawURLEncoding.DecodeString(text)
		require.NoError(t, err)
		require.Equal(t, text, base64.RawURLEncoding.EncodeToString(raw))
		require.Equal(t, token.id, string(raw[:payloadSize]))
		form.judge(token, time.UnixMilli(0))
	})
}
