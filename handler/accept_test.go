package handler

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrefersHTML(t *testing.T) {
	for _, tt := range []struct {
		accept string
		want   bool
	}{
		{"", false},
		{"*/*", false},
		{"text/html", true},
		{"Text/HTML; charset=utf-8", true},
		{"text/*", true},
		{"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", true}, // Firefox, Chromium, Safari
		{"text/html, application/xhtml+xml, image/jxr, */*", true},                                      // EdgeHTML
		{"application/json", false},
		{"application/json, text/plain, */*", false}, // axios
		{"application/json, text/javascript, */*; q=0.01", false},
		{"text/html, application/json", false},
		{"text/html, application/json;q=0.9", true},
		{"text/html;q=0.5, application/problem+json", false},
		{"text/html;q=0.5, application/*;q=0.4", true},
		{"text/html;q=0, */*", false},
		{"text/html;q=0", false},
		{"application/json;q=0.1, */*", true},
		{"image/*", false},
		{"text/html;q=high", false},
		{"text/html;q=1.5", false},
		{"text/html;q=-1", false},
		{"text/html; q = 0.9 ; level=1, */*;q=0.8", true},
		{`text/plain;x="a, text/html, b"`, false},
		{`text/plain;x="a\", text/html"`, false},
		{",,;,=,;q,text/html,", true},
	} {
		require.Equal(t, tt.want, prefersHTML([]string{tt.accept}), "%q", tt.accept)
		lines := strings.Split(tt.accept, ",")
		if !strings.Contains(tt.accept, `"`) {
			require.Equal(t, tt.want, prefersHTML(lines), "%q in lines", tt.accept)
		}
	}
	require.False(t, prefersHTML(nil))
	require.Zero(t, testing.AllocsPerRun(10, func() { prefersHTML([]string{"text/html;q=0.8,*/*;q=0.1"}) }))
}

func FuzzAccept(f *testing.F) {
	for _, seed := range []string{"text/html", `a;b="\`, "*/*;q=0.1,text/*;q=0.10", "text/html;q=1.0000"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		got := prefersHTML([]string{accept})
		if got {
			lower := strings.ToLower(accept)
			require.True(t, strings.Contains(lower, "text/") || strings.Contains(lower, "*/*"), "HTML for %q", accept)
		}
		if !strings.ContainsAny(accept, `"\`) {
			require.Equal(t, got, prefersHTML(strings.Split(accept, ",")), "one line or several")
			require.False(t, prefersHTML([]string{accept, "application/json"}), "nothing is preferred to JSON of full weight")
		}
	})
}

func TestWaitInWords(t *testing.T) {
	for seconds, want := range map[int64]string{
		1: "1 second", 2: "2 seconds", 90: "90 seconds", 119: "119 seconds", 120: "2 minutes", 121: "3 minutes",
		7199: "120 minutes", 7200: "2 hours", 7201: "3 hours", 172_800: "2 days", 172_801: "3 days",
	} {
		require.Equal(t, want, string(appendWait(nil, seconds)))
	}
}
