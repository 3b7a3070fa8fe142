// Contactform is a web server with one form, and a limit on how often one client may
// send it. It runs on Cloud Run and anywhere else.
//
//	GET  /         the form
//	POST /contact  sends it: 5 in 10 minutes from one client, then 429
//	GET  /healthz  for probes: never limited, asks no store
//
// It is configured by its environment:
//
//	PORT                      default 8080; 0 takes a free one, which the log names
//	SALLYPORT_LIMIT           default "5/10m"; see stores.ParseLimit
//	SALLYPORT_CLIENT_IP       how a client is known; see handler.ParseClientIP. Default
//	                          "cloudrun" on Cloud Run, else "direct"
//	SALLYPORT_KEY_SECRET      keys the hash of addresses in a shared store
//	SALLYPORT_INSTANCES       how many instances share the limit while the store is away
//	UPSTASH_REDIS_REST_URL    and _TOKEN, or KV_REST_API_URL and _TOKEN: count in Upstash
//	SALLYPORT_TABLE           count in this DynamoDB table; with AWS_REGION and keys
//
// Without a store each instance counts for itself. Configuration that can't be meant
// (half of a pair, two stores) ends the program with status 1.
//
// Messages go nowhere yet: see Mailer.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/stores"
	"github.com/sallyport/sallyport/stores/memory"
)

// shutdownTime is for requests under way. Cloud Run kills 10 s after SIGTERM.
const shutdownTime = 8 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)

	slog.SetDefault(newLogger())
	if err := run(ctx); err != nil {
		slog.Error("contact form: stopped", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	store, storeName, err := openStore()
	if err != nil {
		return err
	}
	limit, err := stores.ParseLimit(cmp.Or(os.Getenv("SALLYPORT_LIMIT"), "5/10m"))
	if err != nil {
		return fmt.Errorf("SALLYPORT_LIMIT: %w", err)
	}
	clientIP, err := clientAddress()
	if err != nil {
		return err
	}
	// New wraps a shared store with a fallback, a breaker and remembered refusals.
	guard, err := handler.New(handler.Config{
		Store:    store,
		ClientIP: clientIP,
		Policies: []handler.Policy{{
			Name:  "contact-form",
			Limit: limit,
			Key:   handler.ByIP(),
		}},
	})
	if err != nil {
		return err
	}
	address, err := listenAddress()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: routes(guard, logMailer{slog.Default()}),
		// Bounds for clients that are slow, silent or excessive. WriteTimeout begins with
		// the request's header, so it covers reading the body and asking the store too.
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	slog.Info("contact form: listening", "address", listener.Addr().String(), "store", storeName,
		"limit", limit.String(), "client_ip", clientIP.String())
	if _, alone := store.(*memory.Store); alone && onCloudRun() {
		slog.Warn("contact form: no store is configured, so each instance has a limit of its own; set UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or SALLYPORT_TABLE")
	}
	slog.Warn("contact form: messages are logged by their length and not delivered; put a Mailer of your own into main.go")
	return serve(ctx, server, listener)
}

// routes puts the guard before the one route that costs something. It counts before
// the body is read, so that nonsense counts too.
func routes(guard *handler.Guard, mailer Mailer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", showForm)
	mux.Handle("POST /contact", sameOrigin(guard.Handler(contact{mailer})))
	mux.Handle("GET /contact", http.RedirectHandler("/", http.StatusSeeOther))
	mux.HandleFunc("GET /healthz", healthy)
	return secure(mux)
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte("ok\n"))
}

// serve serves until ctx is done, and then lets the requests under way finish.
func serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	slog.Info("contact form: stopping")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("requests were still under way: %w", err), server.Close())
	}
	return nil
}

// onCloudRun tells by a variable that the platform sets.
func onCloudRun() bool { return os.Getenv("K_SERVICE") != "" }

// clientAddress is who a client is. On Cloud Run the peer is Google's, and the
// address is in the last entry of X-Forwarded-For; anywhere else that header is the
// client's own invention, until you say which proxy writes it.
func clientAddress() (handler.ClientIP, error) {
	text := os.Getenv("SALLYPORT_CLIENT_IP")
	switch {
	case text != "":
		clientIP, err := handler.ParseClientIP(text)
		if err != nil {
			return clientIP, fmt.Errorf("SALLYPORT_CLIENT_IP: %w", err)
		}
		return clientIP, nil
	case onCloudRun():
		return handler.CloudRun(), nil
	}
	return handler.Direct(), nil
}

// listenAddress is on loopback, unless Cloud Run reaches the program from outside.
func listenAddress() (string, error) {
	port := cmp.Or(os.Getenv("PORT"), "8080")
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("PORT: %.20q is no port: want a number from 0 to 65535", port)
	}
	host := "127.0.0.1"
	if onCloudRun() {
		host = ""
	}
	return net.JoinHostPort(host, port), nil
}

// newLogger writes text, and on Cloud Run JSON with the names that its log reads.
func newLogger() *slog.Logger {
	if !onCloudRun() {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			switch {
			case len(groups) > 0:
			case a.Key == slog.MessageKey:
				a.Key = "message"
			case a.Key == slog.LevelKey:
				a.Key = "severity"
				if a.Value.Any() == slog.LevelWarn {
					a.Value = slog.StringValue("WARNING")
				}
			}
			return a
		},
	}))
}
