package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"

func TestTraceOf(t *testing.T) {
	const other = "105445aa7843bc8bf206b12000100000"
	tests := []struct {
		name, parent, google, want string
	}{
		{"W3C", "00-" + traceID + "-00f067aa0ba902b7-01", "", traceID},
		{"Google's", "", other + "/1;o=1", other},
		{"Google's, without a span", "", other, other},
		{"both", "00-" + traceID + "-00f067aa0ba902b7-01", other + "/1", traceID},
		{"the other, if one is none", "00-x-y-01", other + "/1", other},
		{"none", "", "", ""},
		{"upper case", "00-" + strings.ToUpper(traceID) + "-00f067aa0ba902b7-01", "", ""},
		{"zeros", "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", "", ""},
		{"too long", "", other + "0/1", ""},
		{"a line of its own", "", other[:20] + "\",\"x\":\"1/1", ""},
		{"no version", traceID, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := http.Header{}
			h.Set("Traceparent", test.parent)
			h.Set("X-Cloud-Trace-Context", test.google)
			require.Equal(t, test.want, traceOf(h))
		})
	}
}

// Whatever a client sends, an id in the log is 32 digits.
func FuzzTraceOf(f *testing.F) {
	f.Add("00-"+traceID+"-00f067aa0ba902b7-01", "")
	f.Add("", traceID+"/1;o=1")
	f.Add("-", "/")
	f.Fuzz(func(t *testing.T, parent, google string) {
		id := traceOf(http.Header{"Traceparent": {parent}, "X-Cloud-Trace-Context": {google}})
		if id != "" {
			require.Regexp(t, `^[0-9a-f]{32}$`, id)
			require.Contains(t, parent+" "+google, id)
		}
	})
}

// What is logged about a request on Cloud Run names its severity and its trace.
func TestCloudLog(t *testing.T) {
	p := start(t, "K_SERVICE=contactform", "GOOGLE_CLOUD_PROJECT=example")
	a := newVisitor("127.0.0.1").do(t, "POST", p.url+"/contact", goodForm(), "X-Forwarded-For: 203.0.113.1",
		"Content-Type: application/x-www-form-urlencoded", "Traceparent: 00-"+traceID+"-00f067aa0ba902b7-01")
	require.Equal(t, sent, a.StatusCode)

	var line map[string]any
	require.Eventually(t, func() bool {
		for text := range strings.Lines(p.log.String()) {
			if strings.Contains(text, "logging.googleapis.com/trace") {
				return json.Unmarshal([]byte(text), &line) == nil
			}
		}
		return false
	}, patience, time.Millisecond)
	require.Equal(t, "projects/example/traces/"+traceID, line["logging.googleapis.com/trace"])
	require.Equal(t, "INFO", line["severity"])
	require.NotEmpty(t, line["message"])
	require.NotContains(t, line, "msg")
	require.NotContains(t, line, "level")
	require.Contains(t, p.log.String(), `"severity":"WARNING"`)
}
