package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
)

// states are what an address may be like when a stranger asks about it.
var states = []struct {
	name    string
	address string
	before  func(s *scene)
	mails   int // by this request, if all is well
}{
	{"known", ann, nil, 1},
	{"known, and it had a mail just now", ann, func(s *scene) { s.askAs("192.0.2.1", ann) }, 0},
	{"known, and hammered", ann, func(s *scene) {
		for i := range 30 {
			s.askAs(fmt.Sprintf("192.0.2.%d", i), ann)
		}
	}, 0},
	{"known, and its time is over", ann, func(s *scene) { s.askAs("192.0.2.1", ann); time.Sleep(quiet) }, 1},
	{"unknown", stranger, nil, 0},
	{"unknown, and asked about just now", stranger, func(s *scene) { s.askAs("192.0.2.1", stranger) }, 0},
	{"unknown to all the world", "x@y", nil, 0},
}

// Whatever an address is like, status, headers and body are the same to the byte, and
// come after the same time to the nanosecond of a clock that stands still while code
// runs: healthy and broken, the mailer quick, slow, silent, failing or panicking.
func TestAnswersAreAlike(t *testing.T) {
	mailers := map[string]func(ctx context.Context) error{
		"quick":   nil,
		"slow":    func(context.Context) error { time.Sleep(450 * time.Millisecond); return nil },
		"silent":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"failing": func(context.Context) error { return errors.New("550 no such user " + ann) },
		"panics":  func(context.Context) error { panic(ann) },
	}
	for _, path := range []string{"memory", "shared", "down", "slow store"} {
		for name, send := range mailers {
			t.Run(path+", mailer "+name, func(t *testing.T) {
				var want string
				for _, state := range states {
					synctest.Test(t, func(t *testing.T) {
						store := inMemory(t)
						var server *upstashtest.Server
						if path != "memory" {
							server = upstashtest.NewBubble(t)
							store = inUpstash(t, server, server.Transport())
						}
						s := open(t, store, func(c *config) { c.floor = time.Second })
						s.mailer.send = send
						if path == "down" {
							server.SetDown(true)
						}
						if state.before != nil {
							state.before(s)
						}
						if path == "slow store" {
							server.SetDelay(150 * time.Millisecond)
						}
						sent := len(s.mailer.mails())
						start := time.Now()
						answer := fmt.Sprint(s.askAs("203.0.113.5", state.address), " after ", time.Since(start))
						if want == "" {
							want = answer
							require.Contains(t, answer, "200 ")
							require.Contains(t, answer, " after 1s")
						}
						require.Equal(t, want, answer, state.name)
						require.NotContains(t, answer, "reset-mail")
						require.Len(t, s.mailer.mails(), sent+state.mails, state.name)
					})
				}
			})
		}
	}
}

// A store that is slower than the floor makes all answers late, and none of them more.
func TestStoreSlowerThanTheFloor(t *testing.T) {
	var took []time.Duration
	for _, address := range []string{ann, stranger} {
		synctest.Test(t, func(t *testing.T) {
			server := upstashtest.NewBubble(t)
			s := open(t, inUpstash(t, server, server.Transport()), func(c *config) { c.floor = 200 * time.Millisecond })
			s.mailer.send = func(context.Context) error { time.Sleep(90 * time.Millisecond); return nil }
			server.SetDelay(time.Hour)
			start := time.Now()
			require.Contains(t, s.askAs("203.0.113.5", address), "200 ")
			took = append(took, time.Since(start))
		})
	}
	require.Equal(t, took[0], took[1])
	require.Greater(t, took[0], 200*time.Millisecond)
}

// What is no address is told so at once: that depends on nothing but what was typed. So
// do refusals of a client, which don't wait for the floor either.
func TestWhatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, inMemory(t))
		start := time.Now()
		for _, address := range []string{"", " ", "ann", "Ann <ann@example.com>", "ann@example.com, b@example.com", "ann@example.com\nBcc: b@example.com"} {
			require.Contains(t, s.askAs("203.0.113.5", address), "422 ", address)
		}
		r := request("203.0.113.6", ann)
		r.Body, r.ContentLength = http.NoBody, 0
		r.URL.RawQuery = "email=" + ann
		require.Contains(t, s.ask(r), "400 ")
		r = request("203.0.113.6", ann)
		r.Header.Set("Content-Type", "application/json")
		require.Contains(t, s.ask(r), "400 ")
		r = request("203.0.113.6", ann)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		require.Contains(t, s.ask(r), "403 ")
		require.Zero(t, time.Since(start))
		require.Empty(t, s.mailer.mails())
	})
}
