package form

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/stores"
)

func TestNewRefuses(t *testing.T) {
	few := newGuard(t, newShared(t), 5)
	tests := []struct {
		name string
		cfg  Config
		says string
	}{
		{"no ID", Config{Secret: secret}, "ID"},
		{"long ID", Config{ID: strings.Repeat("x", 65), Secret: secret}, "ID"},
		{"ID with a line end", Config{ID: "a\nb", Secret: secret}, "ID"},
		{"no secret", Config{ID: "x"}, "Secret: 0 bytes"},
		{"short secret", Config{ID: "x", Secret: secret[:15]}, "Secret: 15 bytes"},
		{"short old secret", Config{ID: "x", Secret: secret, OldSecrets: [][]byte{secret, nil}}, "OldSecrets[1]"},
		{"MaxAge below MinFill", Config{ID: "x", Secret: secret, MaxAge: time.Second}, "MaxAge"},
		{"MaxAge of MinFill", Config{ID: "x", Secret: secret, MinFill: time.Hour, MaxAge: time.Hour}, "MaxAge"},
		{"negative MaxAge", Config{ID: "x", Secret: secret, MaxAge: -1}, "MaxAge"},
		{"MaxAge of years", Config{ID: "x", Secret: secret, MaxAge: longestAge + 1}, "MaxAge"},
		{"negative Uses", Config{ID: "x", Secret: secret, Uses: -1}, "Uses"},
		{"negative MaxBody", Config{ID: "x", Secret: secret, MaxBody: -1}, "MaxBody"},
		{"Class of two", Config{ID: "x", Secret: secret, Class: "a b"}, "Class"},
		{"Class with markup", Config{ID: "x", Secret: secret, Class: `a"><script>`}, "Class"},
		{"Class that begins with a digit", Config{ID: "x", Secret: secret, Class: "1a"}, "Class"},
		{"CaptchaDown alone", Config{ID: "x", Secret: secret, CaptchaDown: few}, "CaptchaDown"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := New(test.cfg)
			require.ErrorIs(t, err, stores.ErrInvalid)
			require.Nil(t, f)
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), string(secret[:15]))
		})
	}
}

func TestNewAccepts(t *testing.T) {
	captcha := judgeFunc(func(context.Context, string, netip.Addr) error { return nil })
	few := newGuard(t, newShared(t), 5)
	for _, cfg := range []Config{
		{ID: "x", Secret: secret[:16], MinFill: -1},
		{ID: strings.Repeat("x", 64), Secret: secret, MinFill: 1, MaxAge: longestAge, Uses: 1 << 20, MaxBody: 1},
		{ID: "x", Secret: secret, MaxAge: longestAge, Guard: few, Captcha: captcha, CaptchaDown: few},
	} {
		_, err := New(cfg)
		require.NoError(t, err)
	}
	f, err := New(Config{ID: "x", Secret: secret})
	require.NoError(t, err)
	require.Equal(t, []any{2 * time.Second, 2 * time.Hour, int64(64 << 10)}, []any{f.minFill, f.maxAge, f.maxBody})
}

// The caller may reuse the slice of the secret.
func TestSecretIsCopied(t *testing.T) {
	mine := append([]byte(nil), secret...)
	f, err := New(Config{ID: "x", Secret: mine})
	require.NoError(t, err)
	text := f.mint(kindFirst, time.Now())
	clear(mine)
	_, ok := f.parse(text)
	require.True(t, ok)
}
