package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
)

// hurried is a scene's change for tests of real time, whose mailer does not wait.
func hurried(c *config) { c.floor = 100 * time.Millisecond }

// Two hundred at once, from as many addresses, over two instances: one mail.
func TestFloodOfOneMailbox(t *testing.T) {
	server := upstashtest.New(t)
	a, b := open(t, inUpstash(t, server, nil), hurried), open(t, inUpstash(t, server, nil), hurried)
	answers := make([]string, 200)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			answer := []*scene{a, b}[i%2].askAs(fmt.Sprintf("198.51.100.%d", i), ann)
			// The end of the client's own window, which is later the slower the store was.
			answers[i] = regexp.MustCompile(`;t=\d+`).ReplaceAllString(answer, "")
		})
	}
	group.Wait()
	for i, answer := range answers {
		require.Equal(t, answers[0], answer, i)
	}
	require.Contains(t, answers[0], "200 ")
	mails := append(a.mailer.mails(), b.mailer.mails()...)
	require.Len(t, mails, 1)
	require.Equal(t, ann, mails[0].To)
	require.Len(t, mails[0].Token, 43)

	// A third instance, that starts now, knows too; and the next window has one more.
	c := open(t, inUpstash(t, server, nil), hurried)
	c.askAs("198.51.100.250", ann)
	require.Empty(t, c.mailer.mails())
	server.FastForward(quiet)
	for i := range 5 {
		c.askAs(fmt.Sprintf("198.51.100.%d", i), ann)
	}
	require.Len(t, c.mailer.mails(), 1)
}

// One client's flood of many mailboxes ends at his limit, and costs no mailbox behind it
// its mail.
func TestFloodByOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, inMemory(t))
		for i := range 200 {
			answer := s.askAs("198.51.100.1", fmt.Sprintf("x%d@example.com", i))
			require.Equal(t, i < 10, answer[:4] == "200 ", answer)
			if i >= 10 {
				require.Contains(t, answer, "429 ")
				require.Contains(t, s.askAs("198.51.100.1", ann), "429 ")
			}
		}
		require.Empty(t, s.mailer.mails())
		require.Contains(t, s.askAs("203.0.113.5", ann), "200 ")
		require.Len(t, s.mailer.mails(), 1)
	})
}

// Somebody burns the mailbox's cooldown from elsewhere. The owner has that mail, hears
// what he would have heard, logs in as before, and gets a mail of his own when the time
// is over, however hard the other one hammers.
func TestOwnerIsNotLockedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		atOnce := func(c *config) { c.floor = time.Millisecond }
		quietly := open(t, inMemory(t), atOnce).askAs("203.0.113.5", ann)
		s := open(t, inMemory(t), atOnce)
		login, err := s.site.guard.With(
			handler.Policy{Name: "login-client", Limit: stores.FixedWindow(10, 15*time.Minute), Key: handler.ByIP()},
			handler.Policy{Name: "login-account", Limit: stores.FixedWindow(20, 15*time.Minute), Key: handler.ByForm("email").Email()},
		)
		require.NoError(t, err)
		hammer := func() {
			for i := range 100 {
				s.askAs(fmt.Sprintf("198.51.100.%d", i), ann)
			}
		}
		hammer()
		require.Len(t, s.mailer.mails(), 1, "it went to the owner")
		require.Equal(t, quietly, s.askAs("203.0.113.5", ann))
		w := httptest.NewRecorder()
		login.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, request("203.0.113.5", ann))
		require.Equal(t, http.StatusOK, w.Code)
		for range 10 {
			hammer()
			time.Sleep(time.Minute)
		}
		require.Len(t, s.mailer.mails(), 1, "hammering")
	})
	synctest.Test(t, func(t *testing.T) {
		s := open(t, inMemory(t), func(c *config) { c.floor = time.Millisecond })
		s.askAs("198.51.100.1", ann)
		for range 14 {
			time.Sleep(time.Minute)
			s.askAs("198.51.100.2", ann)
		}
		require.Len(t, s.mailer.mails(), 1)
		time.Sleep(time.Minute)
		s.askAs("203.0.113.5", ann)
		require.Len(t, s.mailer.mails(), 2, "the window did not move")
	})
}

// All the ways in which one writes a mailbox are one, and the mail goes to the one on
// file.
func TestSpellings(t *testing.T) {
	spellings := []string{ann, "Ann@Example.COM", " ann@example.com ", "ann@example.com\t", "\u00a0ANN@example.com", "\r\nann@example.com"}
	for _, first := range spellings {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, inMemory(t))
			for i, address := range append([]string{first}, spellings...) {
				require.Contains(t, s.askAs(fmt.Sprintf("198.51.100.%d", i), address), "200 ")
			}
			require.Len(t, s.mailer.mails(), 1, "%q", first)
			require.Equal(t, ann, s.mailer.mails()[0].To)
		})
	}
}

// Every spelling finds the account, and none under another key: what Find takes for one,
// the guard counts as one.
func TestSpellingIsTheKeys(t *testing.T) {
	const onFile = "\u00c5.k\u00e9@example.com"
	spellings := []string{onFile, "\u00e5.k\u00e9@example.com", "\u212b.\u212a\u00c9@example.com", "A\u030a.Ke\u0301@EXAMPLE.com", "a\u030a.k\u00e9@example.com"}
	accounts, err := listAccounts(onFile)
	require.NoError(t, err)
	for _, first := range spellings {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, inMemory(t), func(c *config) { c.accounts = accounts })
			s.askAs("198.51.100.99", first)
			require.Len(t, s.mailer.mails(), 1, "%q", first)
			require.Equal(t, onFile, s.mailer.mails()[0].To)
			for i, address := range spellings {
				s.askAs(fmt.Sprintf("198.51.100.%d", i), address)
			}
			require.Len(t, s.mailer.mails(), 1, "%q", first)
		})
	}
}

// While the store is away each instance sends one mail, and a client stays limited; when
// it is back nobody gets more.
func TestStoreOutage(t *testing.T) {
	server := upstashtest.New(t)
	a, b := open(t, inUpstash(t, server, nil), hurried), open(t, inUpstash(t, server, nil), hurried)
	server.SetDown(true)
	for i := range 8 {
		for _, s := range []*scene{a, b} {
			require.Contains(t, s.askAs(fmt.Sprintf("198.51.100.%d", i), ann), "200 ")
		}
	}
	require.Len(t, a.mailer.mails(), 1)
	require.Len(t, b.mailer.mails(), 1)
	var group sync.WaitGroup
	refused := make(chan bool, 40)
	for range 40 {
		group.Go(func() { refused <- a.askAs("198.51.100.99", stranger)[:4] == "429 " })
	}
	group.Wait()
	close(refused)
	n := 0
	for r := range refused {
		if r {
			n++
		}
	}
	require.Equal(t, 30, n)
	require.Contains(t, a.log.String(), "the shared store fails")
}

// Hanging up saves neither the count nor the mail, and holds no place until the floor.
func TestHangUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangUp context.CancelFunc
		s := open(t, inMemory(t), func(c *config) {
			c.accounts = accountsFunc(func() (string, error) { hangUp(); return ann, nil })
		})
		var sent []error
		s.mailer.send = func(ctx context.Context) error { sent = append(sent, ctx.Err()); return nil }
		start := time.Now()
		for range 20 {
			var ctx context.Context
			ctx, hangUp = context.WithCancel(t.Context())
			s.ask(request("198.51.100.1", ann).WithContext(ctx))
			hangUp() // the refused ones come to no account
		}
		require.Zero(t, time.Since(start))
		require.Equal(t, []error{nil}, sent, "the mail had its time")
		require.Contains(t, s.askAs("198.51.100.1", ann), "429 ", "each of them counted")
	})
}
