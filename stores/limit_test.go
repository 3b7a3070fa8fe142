package stores

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLimitValidate(t *testing.T) {
	good := []Limit{
		FixedWindow(1, time.Millisecond),
		FixedWindow(1<<53-1, maxWindow),
		SlidingWindow(1000, 24*time.Hour),
		TokenBucket(1000, time.Millisecond),
		Cooldown(time.Hour),
		LeakyBucket(5, time.Second).BlockFor(time.Minute),
	}
	for _, l := range good {
		require.NoError(t, l.Validate(), l.String())
		require.Zero(t, testing.AllocsPerRun(10, func() { _ = l.Validate() }))
	}
	bad := []Limit{
		{},
		FixedWindow(0, time.Second),
		FixedWindow(-1, time.Second),
		FixedWindow(math.MinInt, time.Second),
		FixedWindow(1<<53, time.Second),
		FixedWindow(1, 0),
		FixedWindow(1, -time.Second),
		FixedWindow(1, time.Millisecond-1),
		FixedWindow(1, maxWindow+1),
		FixedWindow(1, time.Second).BlockFor(-1),
		FixedWindow(1, time.Second).BlockFor(time.Microsecond),
		FixedWindow(1, time.Second).BlockFor(math.MaxInt64),
		SlidingWindow(1<<50, time.Hour),
		TokenBucket(1001, time.Millisecond),
		{Algorithm: 9, Quota: 1, Window: time.Second},
	}
	for _, l := range bad {
		require.ErrorIs(t, l.Validate(), ErrInvalid, l.String())
		_, err := l.MarshalText()
		require.ErrorIs(t, err, ErrInvalid)
	}
}

func TestParseLimit(t *testing.T) {
	tests := []struct {
		text, back string
		want       Limit
	}{
		{"5/10m", "5/10m", FixedWindow(5, 10*time.Minute)},
		{"fixed 5/10m", "5/10m", FixedWindow(5, 10*time.Minute)},
		{"  sliding   100/1m ", "sliding 100/1m", SlidingWindow(100, time.Minute)},
		{"log 10/1h", "log 10/1h", SlidingLog(10, time.Hour)},
		{"token 20/4s", "token 20/4s", TokenBucket(20, 4*time.Second)},
		{"leaky 5/1s", "leaky 5/1s", LeakyBucket(5, time.Second)},
		{"cooldown 15m", "1/15m", Cooldown(15 * time.Minute)},
		{"cooldown 15m block 1h", "1/15m block 1h", Cooldown(15 * time.Minute).BlockFor(time.Hour)},
		{"5/1d", "5/24h", FixedWindow(5, 24*time.Hour)},
		{"5/1d12h", "5/36h", FixedWindow(5, 36*time.Hour)},
		{"5/1500ms", "5/1.5s", FixedWindow(5, 1500*time.Millisecond)},
		{"5/1h0m30s", "5/1h0m30s", FixedWindow(5, time.Hour+30*time.Second)},
		{"5/1h30m block 250ms", "5/1h30m block 250ms", FixedWindow(5, 90*time.Minute).BlockFor(250 * time.Millisecond)},
		{"1/87600h", "1/87600h", FixedWindow(1, maxWindow)},
	}
	for _, test := range tests {
		got, err := ParseLimit(test.text)
		require.NoError(t, err, test.text)
		require.Equal(t, test.want, got)
		require.Equal(t, test.back, got.String())
		again, err := ParseLimit(got.String())
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
}

func TestParseLimitErrors(t *testing.T) {
	for text, says := range map[string]string{
		"":                        "empty",
		"5":                       "quota/window",
		"5/":                      "duration",
		"/10m":                    "quota",
		"0/10m":                   "quota of 0",
		"-5/10m":                  "quota",
		"+5/10m":                  "quota",
		"5/-10m":                  "duration",
		"5/+10m":                  "duration",
		"5/10":                    "duration",
		"5/0s":                    "window of 0s",
		"5/10m block":             "block",
		"5/10m block 0s":          "leave",
		"5/10m block 1h x":        "nothing",
		"5/10m for 1h":            "nothing",
		"sliding":                 "missing",
		"cooldown":                "missing",
		"cooldown 5/10m":          "duration",
		"slidng 5/10m":            "fixed, sliding, log, token, leaky",
		"5/4000d":                 "duration",
		"5/0.5d":                  "duration",
		"5/d":                     "duration",
		"99999999999999999999/1s": "quota",
		"5/9999999999h":           "duration",
		"token 9999/1ms":          "microsecond",
	} {
		_, err := ParseLimit(text)
		require.ErrorIs(t, err, ErrInvalid, text)
		require.ErrorContains(t, err, says, text)
		require.Less(t, len(err.Error()), 400)
	}
}

func TestLimitJSON(t *testing.T) {
	var got struct{ Limit Limit }
	require.NoError(t, json.Unmarshal([]byte(`{"Limit":"token 20/4s"}`), &got))
	require.Equal(t, TokenBucket(20, 4*time.Second), got.Limit)
	text, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `{"Limit":"token 20/4s"}`, string(text))
	before := got
	require.ErrorIs(t, json.Unmarshal([]byte(`{"Limit":"nonsense"}`), &got), ErrInvalid)
	require.Equal(t, before, got)
}

func FuzzParseLimit(f *testing.F) {
	for _, s := range []string{"5/10m", "cooldown 1d", "token 20/4s block 1h", "5/1d-1h", "5/\xff", "5/1d1d", "log 1/1ns"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLimit(s)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			return
		}
		require.NoError(t, l.Validate())
		again, err := ParseLimit(l.String())
		require.NoError(t, err, l.String())
		require.Equal(t, l, again)
	})
}
