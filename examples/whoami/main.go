// Whoami shows whom a guard takes you for: the address that it finds, by which strategy,
// and the key that it would count you under. Deploy it once in the place of your service,
// with the same environment, and see that the address is right before a limit depends on
// it; then deploy the service. It counts nothing and refuses nobody, and needs no store.
//
//	curl -H "Whoami-Token: $TOKEN" https://your.service/whoami
//
// What to look at:
//
//   - address is yours, and proven is true. An address of 10.0.0.0/8, 169.254.0.0/16 or
//     the like is a proxy's: all your visitors would share one limit.
//   - With -H "X-Forwarded-For: 192.0.2.1", and with any other field that your strategy
//     reads, address and store_key stay as they are: else each visitor chooses his own.
//   - From another network (a telephone) address and store_key are others.
//   - notes is empty, or says what is amiss.
//
// It is configured by its environment:
//
//	SALLYPORT_WHOAMI_TOKEN    who knows it gets an answer, all others a 404; required, 16
//	                          characters at least: openssl rand -hex 16
//	SALLYPORT_CLIENT_IP       the strategy; see handler.ParseClientIP. Default "cloudrun" on
//	                          Cloud Run, else "direct"
//	SALLYPORT_POLICIES        your policies as JSON, or "@" and the name of a file with it;
//	                          see handler.ParsePolicies. Default: that of
//	                          examples/contactform
//	SALLYPORT_KEY_SECRET      keys the hash in store_key
//	PORT                      default 8080; 0 takes a free one, which the log names
//	HOST                      where to listen; default 127.0.0.1, and everywhere on Cloud Run
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport/sallyport/handler"
)

// contactForm is the policy of examples/contactform.
const contactForm = `[{"name": "contact-form", "limit": "5/10m", "key": "ip"}]`

// minToken is in characters: what can't be tried out over a network.
const minToken = 16

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, slog.Default()); err != nil {
		slog.Error("whoami: stopped", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, logger *slog.Logger) error {
	site, err := configure(logger)
	if err != nil {
		return err
	}
	port := cmp.Or(os.Getenv("PORT"), "8080")
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("PORT: %.20q is no port: want a number from 0 to 65535", port)
	}
	host := os.Getenv("HOST")
	if host == "" && !onCloudRun() {
		host = "127.0.0.1"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           site,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
	logger.Info("whoami: listening", "address", listener.Addr().String(), "client_ip", site.strategy)
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// onCloudRun tells by a variable that the platform sets.
func onCloudRun() bool { return os.Getenv("K_SERVICE") != "" }

// configure reads the environment. Each error begins with the variable's name.
func configure(logger *slog.Logger) (*whoami, error) {
	token := os.Getenv("SALLYPORT_WHOAMI_TOKEN")
	if len(token) < minToken {
		return nil, fmt.Errorf("SALLYPORT_WHOAMI_TOKEN: want %d characters or more, such as openssl rand -hex 16 writes: the page shows how you tell your visitors apart", minToken)
	}
	clientIP := handler.Direct()
	if text := os.Getenv("SALLYPORT_CLIENT_IP"); text != "" {
		var err error
		if clientIP, err = handler.ParseClientIP(text); err != nil {
			return nil, fmt.Errorf("SALLYPORT_CLIENT_IP: %w", err)
		}
	} else if onCloudRun() {
		clientIP = handler.CloudRun()
	}
	policies, err := readPolicies(cmp.Or(os.Getenv("SALLYPORT_POLICIES"), contactForm))
	if err != nil {
		return nil, fmt.Errorf("SALLYPORT_POLICIES: %w", err)
	}
	guard, err := handler.New(handler.Config{Store: witness{}, ClientIP: clientIP, Policies: policies, Logger: logger})
	if err != nil {
		return nil, err
	}
	return &whoami{guard: guard, policies: policies, strategy: clientIP.String(), token: sha256.Sum256([]byte(token))}, nil
}

// readPolicies reads the list itself, or the file that is named behind an "@".
func readPolicies(text string) ([]handler.Policy, error) {
	data := []byte(text)
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		var err error
		if data, err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return handler.ParsePolicies(data)
}
