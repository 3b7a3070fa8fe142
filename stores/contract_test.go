package stores

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHitValidate(t *testing.T) {
	limit := FixedWindow(5, time.Minute)
	good := []Hit{
		{Key: "k", Limit: limit},
		{Key: " ~", Limit: limit, Cost: math.MaxInt},
		{Key: strings.Repeat("k", 512), Limit: limit, Outage: OutageRefuse},
	}
	for _, h := range good {
		require.NoError(t, h.Validate())
		require.Zero(t, testing.AllocsPerRun(10, func() { _ = h.Validate() }))
	}
	bad := []Hit{
		{Limit: limit},
		{Key: strings.Repeat("k", 513), Limit: limit},
		{Key: "secret\n", Limit: limit},
		{Key: "secret\x7f", Limit: limit},
		{Key: "secret\u00e9", Limit: limit},
		{Key: "secret\xff", Limit: limit},
		{Key: "secret\x00", Limit: limit},
		{Key: "secret", Limit: limit, Cost: -1},
		{Key: "secret", Limit: limit, Outage: 3},
		{Key: "secret"},
	}
	for _, h := range bad {
		err := h.Validate()
		require.ErrorIs(t, err, ErrInvalid)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestKinds(t *testing.T) {
	require.ErrorIs(t, ErrHotKey, ErrThrottled)
	require.NotErrorIs(t, ErrThrottled, ErrHotKey)
	kinds := []error{ErrUnavailable, ErrThrottled, ErrMisconfigured, ErrInvalid}
	for i, a := range kinds {
		for j, b := range kinds {
			require.Equal(t, i == j, errors.Is(a, b))
		}
	}
}

func TestTexts(t *testing.T) {
	for _, o := range []Outage{OutageFallBack, OutageAllow, OutageRefuse} {
		text, err := o.MarshalText()
		require.NoError(t, err)
		require.Equal(t, o.String(), string(text))
		var back Outage
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, o, back)
	}
	var o Outage
	require.ErrorIs(t, o.UnmarshalText([]byte("panic")), ErrInvalid)
	_, err := Outage(7).MarshalText()
	require.ErrorIs(t, err, ErrInvalid)
	require.Equal(t, "Outage(7)", Outage(7).String())
	require.Equal(t, "Source(9)", Source(9).String())
	require.Equal(t, "Algorithm(9)", Algorithm(9).String())
	require.Equal(t, []string{"shared", "local", "remembered", "none"},
		[]string{Shared.String(), Local.String(), Remembered.String(), None.String()})
}

func TestKeyer(t *testing.T) {
	k, err := NewKeyer("", []byte("secret one"))
	require.NoError(t, err)
	limit := FixedWindow(5, 10*time.Minute)
	key := k.Key("contact-form", limit, "203.0.113.7")
	require.Regexp(t, `^sallyport:contact-form:f1:600000:[A-Za-z0-9_-]{22}$`, key)
	require.Equal(t, key, k.Key("contact-form", FixedWindow(50, 10*time.Minute), "203.0.113.7"), "a changed quota keeps the state")

	other, err := NewKeyer("", []byte("secret two"))
	require.NoError(t, err)
	public, err := NewKeyer("", nil)
	require.NoError(t, err)
	tail := func(key string) string { return key[strings.LastIndex(key, ":")+1:] }
	require.NotEqual(t, tail(key), tail(other.Key("contact-form", limit, "203.0.113.7")))
	require.NotEqual(t, tail(key), tail(public.Key("contact-form", limit, "203.0.113.7")))

	seen := map[string]string{key: "first"}
	for what, key := range map[string]string{
		"window":     k.Key("contact-form", FixedWindow(5, time.Minute), "203.0.113.7"),
		"algorithm":  k.Key("contact-form", SlidingWindow(5, 10*time.Minute), "203.0.113.7"),
		"block":      k.Key("contact-form", limit.BlockFor(time.Hour), "203.0.113.7"),
		"name":       k.Key("login", limit, "203.0.113.7"),
		"identity":   k.Key("contact-form", limit, "203.0.113.8"),
		"none":       k.Key("contact-form", limit),
		"empty":      k.Key("contact-form", limit, ""),
		"two":        k.Key("contact-form", limit, "203.0.113.7", ""),
		"ab, c":      k.Key("contact-form", limit, "ab", "c"),
		"a, bc":      k.Key("contact-form", limit, "a", "bc"),
		"abc":        k.Key("contact-form", limit, "abc"),
		"NUL":        k.Key("contact-form", limit, "abc\x00"),
		"0xFF":       k.Key("contact-form", limit, "abc\xff"),
		"0xFE":       k.Key("contact-form", limit, "abc\xfe"),
		"odd name":   k.Key("na\nme", limit, "a"),
		"odd name 2": k.Key("na\rme", limit, "a"),
		"long name":  k.Key(strings.Repeat("n", 129), limit, "a"),
		"long":       k.Key("contact-form", limit, strings.Repeat("x", 1<<20)),
	} {
		require.NoError(t, Hit{Key: key, Limit: limit}.Validate(), what)
		require.Empty(t, seen[key], "%s has the key of %s", what, seen[key])
		seen[key] = what
	}
	longest, err := NewKeyer(strings.Repeat("p", 128), nil)
	require.NoError(t, err)
	require.NoError(t, Hit{Key: longest.Key(strings.Repeat("n", 128), FixedWindow(1, maxWindow), "a"), Limit: limit}.Validate())

	for _, prefix := range []string{"caf\u00e9:", "a\nb", strings.Repeat("p", 129)} {
		_, err := NewKeyer(prefix, nil)
		require.ErrorIs(t, err, ErrInvalid)
	}
}

// The keyer takes a copy: a caller may wipe its secret.
func TestKeyerCopiesSecret(t *testing.T) {
	secret := []byte("secret")
	k, err := NewKeyer("p:", secret)
	require.NoError(t, err)
	before := k.Key("n", FixedWindow(1, time.Second), "id")
	clear(secret)
	for range 100 {
		require.Equal(t, before, k.Key("n", FixedWindow(1, time.Second), "id"))
	}
}

func TestKeyerParallel(t *testing.T) {
	k, err := NewKeyer("", nil)
	require.NoError(t, err)
	limit := FixedWindow(1, time.Second)
	want := k.Key("n", limit, "id")
	done := make(chan bool)
	for range 8 {
		go func() {
			ok := true
			for range 500 {
				ok = ok && k.Key("n", limit, "id") == want && k.Key("n", limit, "other") != want
			}
			done <- ok
		}()
	}
	for range 8 {
		require.True(t, <-done)
	}
}

func BenchmarkKeyer(b *testing.B) {
	k, _ := NewKeyer("", nil)
	limit := FixedWindow(1, time.Second)
	b.ReportAllocs()
	for b.Loop() {
		k.Key("contact-form", limit, "203.0.113.7")
	}
}
