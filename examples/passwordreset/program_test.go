package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// unset clears what the program reads, so that no variable of the machine is in the way.
func unset(t *testing.T) {
	for _, name := range append([]string{"PORT", "K_SERVICE", "RESET_ACCOUNTS", "SALLYPORT_LIMIT", "SALLYPORT_CLIENT_IP", "SALLYPORT_TABLE"}, upstashVariables...) {
		t.Setenv(name, "")
	}
}

// The program as a newcomer starts it: two addresses, one answer, one mail.
func TestProgram(t *testing.T) {
	unset(t)
	t.Setenv("PORT", "0")
	ctx, stop := context.WithCancel(t.Context())
	log, ended := &buffer{}, make(chan error, 1)
	go func() { ended <- run(ctx, slog.New(slog.NewTextHandler(log, nil))) }()
	var url string
	require.Eventually(t, func() bool {
		m := regexp.MustCompile(`listening" address=(\S+)`).FindStringSubmatch(log.String())
		if m != nil {
			url = "http://" + m[1]
		}
		return m != nil
	}, 30*time.Second, time.Millisecond)

	var answers []string
	for i, address := range []string{ann, stranger, ann} {
		start := time.Now()
		resp, err := http.Post(url+"/reset", "application/x-www-form-urlencoded", strings.NewReader(body(address)))
		require.NoError(t, err)
		read, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.GreaterOrEqual(t, time.Since(start), answerTime-time.Millisecond)
		require.Regexp(t, fmt.Sprintf(`^"reset-client";r=%d;t=\d+$`, 9-i), resp.Header.Get("RateLimit"))
		answers = append(answers, fmt.Sprint(resp.Status, len(resp.Header), string(read)))
	}
	require.Equal(t, answers[0], answers[1])
	require.Equal(t, answers[0], answers[2])
	require.Equal(t, 1, strings.Count(log.String(), "a mail would go out now"))
	require.NotContains(t, log.String(), ann)

	resp, err := http.Get(url)
	require.NoError(t, err)
	page, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(page), `<form action="/reset" method="post">`)
	stop()
	require.NoError(t, <-ended)
}

func TestMisconfigured(t *testing.T) {
	for name, value := range map[string]string{
		"PORT": "http", "RESET_ACCOUNTS": "ann", "SALLYPORT_LIMIT": "often", "SALLYPORT_CLIENT_IP": "whoever", "UPSTASH_REDIS_REST_URL": "https://example.com",
	} {
		t.Run(name, func(t *testing.T) {
			unset(t)
			t.Setenv(name, value)
			ended, end := context.WithCancel(t.Context())
			end() // should it start all the same
			err := run(ended, slog.New(slog.DiscardHandler))
			require.Error(t, err)
			named := name
			if name == "UPSTASH_REDIS_REST_URL" {
				named = "UPSTASH_REDIS_REST_TOKEN"
			}
			require.ErrorContains(t, err, named)
		})
	}
}

// BenchmarkAnswer measures what a stranger can: how long the answer takes for an address
// that is known, unknown, or had a mail just now.
func BenchmarkAnswer(b *testing.B) {
	for _, kind := range []struct {
		name, address string
		cooling       bool
	}{{"known", ann, false}, {"unknown", stranger, false}, {"cooling", ann, true}} {
		b.Run(kind.name, func(b *testing.B) {
			store := inMemory(b)
			s := open(b, store, func(c *config) { c.floor = 20 * time.Millisecond })
			n := 0
			s.mailer.send = func(ctx context.Context) error {
				n++
				time.Sleep(5 * time.Millisecond)
				return nil
			}
			if kind.cooling {
				s.askAs("198.51.100.1", ann)
			}
			i := 0
			for b.Loop() {
				b.StopTimer()
				r := request(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), kind.address)
				if i++; !kind.cooling {
					require.NoError(b, s.site.guard.Reset(b.Context(), "reset-mail", kind.address))
				}
				w := httptest.NewRecorder()
				b.StartTimer()
				s.ServeHTTP(w, r)
			}
			b.ReportMetric(float64(n), "mails")
		})
	}
}

// Limits per instance are warned of where there are many, and nowhere else.
func TestAlone(t *testing.T) {
	for _, service := range []string{"", "shop"} {
		unset(t)
		t.Setenv("K_SERVICE", service)
		log := &buffer{}
		warnAlone(slog.New(slog.NewTextHandler(log, nil)), inMemory(t))
		require.Equal(t, service != "", strings.Contains(log.String(), "no store is configured"))
		log = &buffer{}
		warnAlone(slog.New(slog.NewTextHandler(log, nil)), nil)
		require.Empty(t, log.String())
	}
}
