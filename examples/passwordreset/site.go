package main

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
)

// quiet is how long an address gets no other mail.
const quiet = 15 * time.Minute

// config is what a site is made of.
type config struct {
	store    stores.Store
	clientIP handler.ClientIP
	limit    stores.Limit  // of one client
	floor    time.Duration // no answer about an address comes sooner
	accounts Accounts
	mailer   Mailer
	logger   *slog.Logger
}

// site is what the handlers share.
type site struct {
	config
	guard   *handler.Guard
	trouble trouble
}

// newSite returns the whole program as a handler.
func newSite(c config) (http.Handler, error) {
	s, err := openSite(c)
	if err != nil {
		return nil, err
	}
	return s.handler(), nil
}

func openSite(c config) (*site, error) {
	guard, err := handler.New(handler.Config{
		Store:    c.store,
		ClientIP: c.clientIP,
		Policies: []handler.Policy{
			// Who asks comes first. Its refusal shows, and says nothing about an address;
			// and one who is refused uses up no other's mail.
			{
				Name:  "reset-client",
				Limit: c.limit,
				Key:   handler.ByIP(),
			},
			// What is asked for silences the mail and nothing else. It is in no header, and
			// it refuses nobody: else anybody could tell by it, or lock the owner out.
			{
				Name:  "reset-mail",
				Limit: stores.Cooldown(quiet),
				Key:   handler.ByForm("email").Email(),
				Mode:  handler.Signal,
			},
		},
		BodyLimit: maxBody,
		Logger:    c.logger,
	})
	if err != nil {
		return nil, err
	}
	return &site{config: c, guard: guard, trouble: trouble{logger: c.logger}}, nil
}

func (s *site) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", showForm)
	mux.Handle("POST /reset", sameOrigin(arrival(withoutQuery(s.guard.Handler(http.HandlerFunc(s.reset))))))
	mux.Handle("GET /reset", http.RedirectHandler("/", http.StatusSeeOther))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write([]byte("ok\n"))
	})
	return secure(mux)
}

// sameOrigin answers 403 to a browser that another site made send the form, so that
// such a site can't use up its visitors' quota, or have mails sent from all over the
// world. Programs that are no browser pass.
func sameOrigin(next http.Handler) http.Handler {
	return http.NewCrossOriginProtection().Handler(next)
}

// withoutQuery refuses fields in the URL, which end up in logs.
func withoutQuery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			writePage(w, http.StatusBadRequest, "Please send the address as a form does, and not in the URL.")
			return
		}
		next.ServeHTTP(w, r)
	})
}
