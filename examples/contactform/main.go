// Contactform is a web server with one form, a limit on how often one client may send
// it, and what keeps programs from filling it in. It runs on Cloud Run and anywhere else.
//
//	GET  /         the form
//	POST /contact  sends it: 5 in 10 minutes from one client, then 429; goes on to
//	GET  /thanks   which a browser may reload without sending anything again
//	GET  /healthz  for probes: never limited, asks no store
//
// It is configured by its environment:
//
//	PORT                      default 8080; 0 takes a free one, which the log names
//	SALLYPORT_LIMIT           default "5/10m"; see stores.ParseLimit
//	SALLYPORT_FORM_SECRET     signs the form; needed with a store and on Cloud Run, the same
//	                          in all instances: openssl rand -hex 32. Else one is made up
//	                          at each start, and pages that are open then send nothing
//	SALLYPORT_MIN_FILL        how long a person needs at least to fill it in; default "2s",
//	                          0 for tests
//	SALLYPORT_CAPTCHA         "turnstile" or "hcaptcha"; default none. With
//	SALLYPORT_CAPTCHA_SITEKEY and _SECRET. Keys that pass everybody, to try it out:
//	                          turnstile 1x00000000000000000000AA and
//	                          1x0000000000000000000000000000000AA; hcaptcha
//	                          10000000-ffff-ffff-ffff-000000000001 and
//	                          0x0000000000000000000000000000000000000000
//	SALLYPORT_CLIENT_IP       how a client is known; see handler.ParseClientIP. Default
//	                          "cloudrun" on Cloud Run, else "direct"
//	SALLYPORT_KEY_SECRET      keys the hash of addresses in a shared store
//	SALLYPORT_INSTANCES       how many instances share the limit while the store is away
//	UPSTASH_REDIS_REST_URL    and _TOKEN, or KV_REST_API_URL and _TOKEN: count in Upstash
//	SALLYPORT_TABLE           count in this DynamoDB table; with AWS_REGION and keys
//	GOOGLE_CLOUD_PROJECT      on Cloud Run: binds what the log says of a request to its trace
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
	_, alone := store.(*memory.Store)
	secret, err := formSecret(alone)
	if err != nil {
		return err
	}
	fill, err := minFill()
	if err != nil {
		return err
	}
	captcha, err := openCaptcha()
	if err != nil {
		return err
	}
	site, err := newSite(config{store, clientIP, limit, secret, fill, captcha, logMailer{slog.Default()}})
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
		Handler: traced(site),
		// Bounds for clients that are slow, silent or excessive. WriteTimeout begins with
		// the request's header, so it covers reading the body and asking the store too.
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	slog.Info("contact form: listening", "address", listener.Addr().String(), "store", storeName,
		"limit", limit.String(), "client_ip", clientIP.String())
	if alone && onCloudRun() {
		slog.Warn("contact form: no store is configured, so each instance has a limit of its own; set UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or SALLYPORT_TABLE")
	}
	slog.Warn("contact form: messages are logged by their length and not delivered; put a Mailer of your own into main.go")
	return serve(ctx, server, listener)
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
