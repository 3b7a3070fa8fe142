package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// inputs finds the fields of the form's page that a browser sends along.
var inputs = regexp.MustCompile(`<input [^>]*name="([^"]+)"[^>]* value="([^"]*)"`)

// hammerers is how many keys are hammered.
const hammerers = 4

// sendTraffic starts all sorts of clients, which stop when ctx is done.
func sendTraffic(ctx context.Context, cfg config, fleet []*program, r *report, all *sync.WaitGroup) {
	seed := rand.New(rand.NewPCG(cfg.seed, 2))
	each := func(f func(c *client)) {
		c := &client{config: cfg, fleet: fleet, report: r, rng: rand.New(rand.NewPCG(seed.Uint64(), 3)), http: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: 4},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       patience,
		}}
		all.Go(func() {
			defer c.http.CloseIdleConnections()
			for ctx.Err() == nil {
				f(c)
			}
		})
	}
	for n := range hammerers {
		for range fleet {
			each(func(c *client) { c.hammer(ctx, fmt.Sprintf("203.0.113.%d", n+1)) })
		}
	}
	for range 2 {
		each(func(c *client) { c.flood(ctx) })
		each(func(c *client) { c.hangUp(ctx) })
		each(func(c *client) { c.drip(ctx) })
		each(func(c *client) { c.hugeHeader(ctx) })
	}
	for range 4 {
		each(func(c *client) { c.visit(ctx) })
	}
}

// client is one goroutine's means.
type client struct {
	config
	fleet  []*program
	report *report
	rng    *rand.Rand
	http   *http.Client
	form   string // a body that the form accepts; "" when it was sent and let through
}

// load gets the form's page as a browser does, and fills it in, unless the last one was
// not used: what it holds is good for a few times, and in an outage perhaps for one.
func (c *client) load() {
	if c.form != "" {
		return
	}
	resp, err := c.http.Get(c.instance().url + "/")
	if err != nil {
		c.report.fail("the page of the form does not come")
		return
	}
	defer func() { _ = resp.Body.Close() }()
	page, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		c.report.fail(fmt.Sprint("the page of the form comes with status ", resp.StatusCode))
		return
	}
	form := url.Values{}
	for _, m := range inputs.FindAllSubmatch(page, -1) {
		form.Set(string(m[1]), string(m[2]))
	}
	form.Set("name", "Ada")
	form.Set("email", "ada@example.com")
	form.Set("message", "Hello")
	c.form = form.Encode()
}

// taken tells whether the status is that of a message that was let through.
func taken(status int) bool { return status == http.StatusOK || status == http.StatusSeeOther }

func (c *client) instance() *program { return c.fleet[c.rng.IntN(len(c.fleet))] }

// address invents a client in a network of its own.
func (c *client) address(network int) string {
	return fmt.Sprintf("%d.%d.%d.%d", network, c.rng.IntN(256), c.rng.IntN(256), c.rng.IntN(256))
}

// post sends the form and returns the status; 0 means that there was no answer.
func (c *client) post(from string, header ...string) int {
	c.load()
	// Not under the run's context: what is under way when it ends is to be answered.
	r, err := http.NewRequest(http.MethodPost, c.instance().url+"/contact", strings.NewReader(c.form))
	if err != nil {
		c.report.fail(err.Error())
		return 0
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Forwarded-For", from)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	c.report.status(resp.StatusCode)
	if taken(resp.StatusCode) {
		c.form = ""
	}
	return resp.StatusCode
}

// hammer posts without a pause under one address.
func (c *client) hammer(ctx context.Context, from string) {
	switch status := c.post(from); {
	case taken(status):
		c.report.admit(from)
	case status != http.StatusTooManyRequests:
		c.report.fail(fmt.Sprint("a hammerer got status ", status))
	}
	sleep(ctx, between(c.rng, 0, 20*time.Millisecond))
}

// flood posts under an address that nobody saw before.
func (c *client) flood(ctx context.Context) {
	c.post(c.address(10))
	sleep(ctx, between(c.rng, 0, 10*time.Millisecond))
}

// visit is an honest visitor: a look at the form, three messages, and time to think.
func (c *client) visit(ctx context.Context) {
	from := c.address(100)
	for range 3 {
		begun := time.Now()
		status := c.post(from)
		c.report.visited(status, time.Since(begun))
		if !sleep(ctx, between(c.rng, c.window/50, c.window/10)) {
			return
		}
	}
}
