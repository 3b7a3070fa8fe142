// Proxy is a guard for services that are not written in Go: it stands before one of
// them, on the same machine or in the same pod, counts each request, and hands on what
// its policies allow. Answers stream; uploads, WebSockets, trailers and 1xx answers pass;
// a request's body reaches the service byte for byte, also where a policy has read it.
//
// It is configured by its environment:
//
//	UPSTREAM                  where the service is, such as "http://127.0.0.1:3000";
//	                          required
//	SALLYPORT_POLICIES        a list of policies as JSON, or "@" and the name of a file
//	                          with it; required; see handler.ParsePolicies
//	SALLYPORT_CLIENT_IP       how a client is known; see handler.ParseClientIP. Default
//	                          "cloudrun" on Cloud Run, else "direct"
//	PORT                      default 8080; 0 takes a free one, which the log names
//	HOST                      where to listen; default 127.0.0.1, and everywhere on Cloud Run
//	SALLYPORT_KEY_SECRET      keys the hash of addresses in a shared store
//	SALLYPORT_INSTANCES       how many instances share the limits while the store is away
//	UPSTASH_REDIS_REST_URL    and _TOKEN, or KV_REST_API_URL and _TOKEN: count in Upstash
//	SALLYPORT_TABLE           count in this DynamoDB table; with AWS_REGION and keys
//
// Without a store each instance counts for itself.
//
// What the service may rely on, because a client's own are taken away first:
//
//	X-Forwarded-For    one address: the client's, as the guard knows it, or the peer's
//	                   where none is proven
//	X-Forwarded-Host   the Host that was asked for, as Host is too
//	X-Forwarded-Proto  http, or what the proxy before this one says
//	Sallyport-Verdict  "allowed", or "limited" where a policy in Signal mode says so
//
// Fields whose names have other characters than letters, digits and hyphens don't reach the
// service, because it might take them for others.
//
// The service has to be reachable through the proxy alone. Preflights (OPTIONS of CORS)
// pass uncounted: it should do nothing for them but answer. A WebSocket counts once, when
// it opens; another Upgrade, such as h2c, does not pass.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
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
		slog.Error("proxy: stopped", "error", err)
		os.Exit(1)
	}
}

// config is what a proxy is made of.
type config struct {
	upstream *url.URL
	policies []handler.Policy
	clientIP handler.ClientIP
	store    stores.Store
	logger   *slog.Logger
}

func run(ctx context.Context, logger *slog.Logger) error {
	c, storeName, err := configure(logger)
	if err != nil {
		return err
	}
	proxy, err := newProxy(c)
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
		Handler: proxy,
		// Bounds for clients that are slow, silent or excessive, before there is a request.
		// From there on it may be a stream, and how long that lasts is the service's affair.
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		// Clients that speak no HTTP are no news, and they come in floods.
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	logger.Info("proxy: listening", "address", listener.Addr().String(), "store", storeName,
		"policies", len(c.policies), "client_ip", c.clientIP.String())
	warnAlone(logger, c.store)
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

// listenAddress is on loopback, unless Cloud Run reaches the program from outside.
func listenAddress() (string, error) {
	port := cmp.Or(os.Getenv("PORT"), "8080")
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("PORT: %.20q is no port: want a number from 0 to 65535", port)
	}
	host := os.Getenv("HOST")
	if host == "" && !onCloudRun() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// warnAlone speaks where instances come and go, and each of them has limits of its own.
func warnAlone(logger *slog.Logger, store stores.Store) {
	if _, alone := store.(*memory.Store); alone && onCloudRun() {
		logger.Warn("proxy: no store is configured, so each instance has limits of its own; set UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or SALLYPORT_TABLE")
	}
}

// onCloudRun tells by a variable that the platform sets.
func onCloudRun() bool { return os.Getenv("K_SERVICE") != "" }
