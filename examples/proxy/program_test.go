package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// unset clears what the program reads, so that no variable of the machine is in the way.
func unset(t *testing.T) {
	for _, name := range append([]string{"PORT", "HOST", "K_SERVICE", "UPSTREAM", "SALLYPORT_POLICIES", "SALLYPORT_CLIENT_IP", "SALLYPORT_TABLE"}, upstashVariables...) {
		t.Setenv(name, "")
	}
}

// The program as one starts it, with its policies in a file.
func TestProgram(t *testing.T) {
	unset(t)
	service := httptest.NewServer(http.HandlerFunc(ok))
	t.Cleanup(service.Close)
	path := filepath.Join(t.TempDir(), "policies.json")
	require.NoError(t, os.WriteFile(path, []byte(`[{"name": "all", "limit": "2/1m", "key": "ip"}]`), 0o600))
	t.Setenv("PORT", "0")
	t.Setenv("UPSTREAM", service.URL+"/")
	t.Setenv("SALLYPORT_POLICIES", "@"+path)
	ctx, stop := context.WithCancel(t.Context())
	s, ended := &scene{log: &buffer{}}, make(chan error, 1)
	go func() { ended <- run(ctx, slog.New(slog.NewTextHandler(s.log, nil))) }()
	require.Eventually(t, func() bool {
		m := regexp.MustCompile(`listening" address=(\S+)`).FindStringSubmatch(s.log.String())
		if m != nil {
			s.addr = m[1]
		}
		return m != nil
	}, patience, time.Millisecond)
	for _, want := range []int{200, 200, 429} {
		resp, _ := s.ask(t, "127.0.0.1", "GET", "/", "")
		require.Equal(t, want, resp.StatusCode)
	}
	stop()
	require.NoError(t, <-ended)
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
