package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/internal/upstashtest"
)

type accountsFunc func() (string, error)

func (f accountsFunc) Find(context.Context, string) (string, error) { return f() }

// The address, the client and the token are in no log, header, body or command of the
// store, whatever becomes of the request.
func TestNothingIsToldOfAnybody(t *testing.T) {
	const marker, client = "Marker.Person@example.com", "203.0.113.77"
	t.Setenv("SALLYPORT_KEY_SECRET", "marker-key-secret")
	server := upstashtest.New(t)
	var told strings.Builder
	var tokens []string
	boom := errors.New("550 5.1.1 no mailbox " + marker)
	for name, change := range map[string]func(c *config){
		"known":            func(c *config) { c.accounts, _ = listAccounts(marker) },
		"unknown":          func(*config) {},
		"accounts fail":    func(c *config) { c.accounts = accountsFunc(func() (string, error) { return "", boom }) },
		"accounts panic":   func(c *config) { c.accounts = accountsFunc(func() (string, error) { panic(boom) }) },
		"mail fails":       func(c *config) { c.accounts = accountsFunc(func() (string, error) { return marker, nil }) },
		"mails are logged": func(c *config) { c.accounts, _ = listAccounts(marker); c.mailer = logMailer{c.logger} },
	} {
		for _, down := range []bool{false, true} {
			server.SetDown(down)
			_, err := server.Do("FLUSHALL")
			require.NoError(t, err)
			s := open(t, inUpstash(t, server, nil), func(c *config) { c.floor = 10 * time.Millisecond }, change)
			if name == "mail fails" {
				s.mailer.send = func(context.Context) error { return boom }
			}
			for range 12 {
				told.WriteString(s.askAs(client, marker))
			}
			told.WriteString(s.askAs(client, marker+"\x00"))
			told.WriteString(s.log.String())
			for _, m := range s.mailer.mails() {
				tokens = append(tokens, m.Token)
			}
			if strings.Contains(name, "fail") || strings.Contains(name, "panic") {
				require.Equal(t, 1, strings.Count(s.log.String(), "no mails go out"), "%s: once and not for each request", name)
			}
		}
		server.SetDown(false)
	}
	require.NotEmpty(t, tokens)
	require.Contains(t, told.String(), "a mail would go out now")
	require.NotEmpty(t, server.Commands())
	fmt.Fprint(&told, server.Commands())
	all := bytes.ToLower([]byte(told.String()))
	for _, secret := range append(tokens, marker, strings.ToLower(marker), client, "marker-key-secret") {
		for _, form := range []string{secret, url.QueryEscape(secret), hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret))} {
			require.False(t, bytes.Contains(all, bytes.ToLower([]byte(strings.TrimRight(form, "=")))), form)
		}
	}
}
