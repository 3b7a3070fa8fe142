// Command restdouble serves a double of Upstash Redis over REST on a loopback port, so
// that programs in other languages, and the examples, can be tried without an account.
//
//	go run ./internal/upstashtest/restdouble -listen 127.0.0.1:8079 -token secret
//
// It prints URL and token as shell assignments and runs until it is interrupted. With
// -redis it serves a real Redis; without, an embedded one whose keys expire by the
// wall clock.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sallyport/sallyport/internal/upstashtest"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	redis := flag.String("redis", "", "host:port of a Redis; empty: an embedded one")
	token := flag.String("token", upstashtest.DefaultToken, "the token that is let in")
	flag.Parse()

	double, err := upstashtest.Serve(*listen, *redis, *token)
	if err != nil {
		fmt.Fprintln(os.Stderr, "restdouble:", err)
		os.Exit(1)
	}
	defer double.Close()
	fmt.Printf("UPSTASH_REDIS_REST_URL=%s\nUPSTASH_REDIS_REST_TOKEN=%s\n", double.URL, double.Token)

	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	<-stop.Done()
}
