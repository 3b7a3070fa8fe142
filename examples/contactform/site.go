package main

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/handler/form"
	"github.com/sallyport/sallyport/stores"
)

// config is what a site is made of.
type config struct {
	store    stores.Store
	clientIP handler.ClientIP
	limit    stores.Limit
	secret   []byte
	minFill  time.Duration
	captcha  captcha
	mailer   Mailer
}

// site is what the handlers share.
type site struct {
	form    *form.Form
	captcha captcha
	mailer  Mailer
}

// newSite returns the whole program as a handler.
func newSite(c config) (http.Handler, error) {
	s := &site{captcha: c.captcha, mailer: c.mailer}
	// New wraps a shared store with a fallback, a breaker and remembered refusals.
	guard, err := handler.New(handler.Config{
		Store:    c.store,
		ClientIP: c.clientIP,
		Policies: []handler.Policy{{
			Name:    "contact-form",
			Limit:   c.limit,
			Key:     handler.ByIP(),
			Refused: http.HandlerFunc(s.showRefusal),
		}},
	})
	if err != nil {
		return nil, err
	}
	s.form, err = form.New(form.Config{
		ID:      "contact",
		Secret:  c.secret,
		MinFill: c.minFill,
		Guard:   guard,
		Captcha: c.captcha.Captcha,
		Decoy:   http.HandlerFunc(showThanks), // as for a message that came
		Again:   http.HandlerFunc(s.showTrouble),
		MaxBody: maxBody,
		Class:   "trap", // the policy in secure.go forbids style attributes
		Logger:  slog.Default(),
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.showForm)
	// The one route that costs something.
	mux.Handle("POST /contact", sameOrigin(s.form.Handler(http.HandlerFunc(s.contact))))
	mux.Handle("GET /contact", http.RedirectHandler("/", http.StatusSeeOther))
	mux.HandleFunc("GET /thanks", thanksPage)
	mux.HandleFunc("GET /healthz", healthy)
	return secure(mux, contentSecurityPolicy(c.captcha)), nil
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte("ok\n"))
}
