// Passwordreset is a web server with the most abused form there is: who has forgotten a
// password types an address, and a mail goes there. Nobody learns by it which addresses
// have an account, and nobody's mailbox is flooded by it:
//
//	GET  /         the form
//	POST /reset    10 in 10 minutes from one client, then 429. Else the answer is the same
//	               for an address that is known, unknown, or had a mail just now: status,
//	               headers and body to the byte, and a second after the request came. Each
//	               address gets one mail in 15 minutes, whoever asks
//	GET  /healthz  for probes: never limited, asks no store
//
// It is configured by its environment:
//
//	PORT                      default 8080; 0 takes a free one, which the log names
//	RESET_ACCOUNTS            addresses that have an account, with commas between;
//	                          default "ann@example.com"
//	SALLYPORT_LIMIT           of one client; default "10/10m"; see stores.ParseLimit
//	SALLYPORT_CLIENT_IP       how a client is known; see handler.ParseClientIP. Default
//	                          "cloudrun" on Cloud Run, else "direct"
//	SALLYPORT_KEY_SECRET      keys the hash of addresses in a shared store
//	SALLYPORT_INSTANCES       how many instances share the limits while the store is away
//	UPSTASH_REDIS_REST_URL    and _TOKEN, or KV_REST_API_URL and _TOKEN: count in Upstash
//	SALLYPORT_TABLE           count in this DynamoDB table; with AWS_REGION and keys
//
// Without a store each instance counts for itself. While a store is away each instance
// sends an address one mail in 15 minutes; cap the number of instances.
//
// Mails go nowhere yet, and accounts are a list: see Mailer and Accounts.
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

	if err := run(ctx, slog.Default()); err != nil {
		slog.Error("password reset: stopped", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, logger *slog.Logger) error {
	store, storeName, err := openStore()
	if err != nil {
		return err
	}
	limit, err := stores.ParseLimit(cmp.Or(os.Getenv("SALLYPORT_LIMIT"), "10/10m"))
	if err != nil {
		return fmt.Errorf("SALLYPORT_LIMIT: %w", err)
	}
	clientIP, err := clientAddress()
	if err != nil {
		return err
	}
	accounts, err := listAccounts(cmp.Or(os.Getenv("RESET_ACCOUNTS"), "ann@example.com"))
	if err != nil {
		return fmt.Errorf("RESET_ACCOUNTS: %w", err)
	}
	site, err := newSite(config{
		store: store, clientIP: clientIP, limit: limit, floor: answerTime,
		accounts: accounts, mailer: logMailer{logger}, logger: logger,
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
		Handler: site,
		// Bounds for clients that are slow, silent or excessive. WriteTimeout begins with
		// the request's header, so it covers reading the body, the store and the wait too.
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	logger.Info("password reset: listening", "address", listener.Addr().String(), "store", storeName,
		"limit", limit.String(), "client_ip", clientIP.String())
	warnAlone(logger, store)
	logger.Warn("password reset: mails are logged and not sent; put Accounts and a Mailer of your own into main.go")
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("requests were still under way: %w", err), server.Close())
	}
	return nil
}

// warnAlone speaks where instances come and go, and each of them has limits of its own.
func warnAlone(logger *slog.Logger, store stores.Store) {
	if _, alone := store.(*memory.Store); alone && onCloudRun() {
		logger.Warn("password reset: no store is configured, so each instance has limits of its own; set UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or SALLYPORT_TABLE")
	}
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
