package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	starts := flag.Int("starts", 50, "how often each program is started; 0: measure the sizes alone")
	bars := flag.Bool("bars", false, "fail if a time is over its bar, too")
	flag.Parse()
	if err := measure(*starts, *bars); err != nil {
		fmt.Fprintln(os.Stderr, "coldstart:", err)
		os.Exit(1)
	}
}

func measure(starts int, bars bool) error {
	dir, err := os.MkdirTemp("", "coldstart")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	rows, err := build(dir, variants)
	if err != nil {
		return err
	}
	if err := race(dir, rows, starts); err != nil {
		return err
	}
	fmt.Print(table(rows, starts))
	return missed(rows, bars)
}

// bootstrap is where build puts a variant's program for the machine that it runs on.
func bootstrap(dir string, v variant) string { return filepath.Join(dir, v.folder, "bootstrap") }
