// Command soak runs two instances of examples/contactform for minutes before a real
// redis-server that is stopped, killed and restarted at random, while all sorts of
// clients abuse them.
//
//	go run ./internal/soak -for 5m
//
// It needs redis-server on the PATH, and Go, by which it builds the form. It prints what it saw
// and exits with 1 if a bar was missed: no answer of the 500s, no honest visitor refused
// or left waiting, no key with more in a window than the quota and each instance's share of
// it, memory and open files in bounds, a clean end. What can't be had from
// outside of a process (its goroutines, its heap) is stood in for by its threads, open
// files and resident memory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	length := flag.Duration("for", 5*time.Minute, "how long")
	seed := flag.Uint64("seed", rand.Uint64(), "of faults and traffic; timing differs from run to run all the same")
	window := flag.Duration("window", 10*time.Second, "of the limit")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := run(ctx, config{length: *length, window: *window, seed: *seed, out: os.Stdout})
	switch {
	case errors.Is(err, exec.ErrNotFound):
		fmt.Fprintln(os.Stderr, "soak: redis-server or go is missing (make redis-server installs the one):", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	report.print(os.Stdout)
	if missed := report.missed(); len(missed) > 0 {
		for _, bar := range missed {
			fmt.Println("MISSED:", bar)
		}
		os.Exit(1)
	}
	fmt.Println("all bars hold")
}
