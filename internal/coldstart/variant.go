package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// variant is a program that is measured. The first is what the others stand beside.
type variant struct {
	name   string
	folder string // below this one
	store  string // which double it calls: "", "upstash" or "dynamo"

	// Bars; 0: none. What it may take longer than the first program, and by how many
	// bytes it may be larger than the program of the folder over, on each architecture.
	slower time.Duration
	larger int64
	over   string
}

// A store is held against the kit with memory alone, so that the bars of the stores and
// the kit's own can't hide in each other.
var variants = []variant{
	{name: "a bare handler, without the kit", folder: "bare"},
	{name: "memory alone", folder: "memory", slower: time.Millisecond, larger: 1_100_000, over: "bare"},
	{name: "Upstash", folder: "upstash", store: "upstash", slower: time.Millisecond, larger: 300_000, over: "memory"},
	{name: "DynamoDB, `dynamo.FromEnv`", folder: "dynamo", store: "dynamo", slower: 5 * time.Millisecond, larger: 2_200_000, over: "memory"},
	{name: "DynamoDB, AWS's config package", folder: "config", store: "dynamo"},
}

// architectures are those that Lambda has.
var architectures = []string{"amd64", "arm64"}

// row is what was measured of a variant.
type row struct {
	variant
	size  map[string]int64 // bytes, by architecture
	times []time.Duration  // from exec to the first answer, by round
}

// build makes all programs, with the flags of the Makefile's Lambda target.
func build(dir string, variants []variant) ([]*row, error) {
	var rows []*row
	for _, v := range variants {
		r := &row{variant: v, size: make(map[string]int64)}
		for _, arch := range architectures {
			path := filepath.Join(dir, v.folder, arch)
			if err := compile(v, "linux", arch, path); err != nil {
				return nil, err
			}
			info, err := os.Stat(path)
			if err != nil {
				return nil, err
			}
			r.size[arch] = info.Size()
		}
		if err := compile(v, runtime.GOOS, runtime.GOARCH, bootstrap(dir, v)); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// compile builds in the program's own folder, since one of them is another module.
func compile(v variant, system, arch, path string) error {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/sallyport/sallyport").Output()
	if err != nil {
		return fmt.Errorf("the kit's folder: %w", err)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w", "-o", path, ".")
	cmd.Dir = filepath.Join(strings.TrimSpace(string(module)), "internal", "coldstart", v.folder)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build of %s for %s/%s: %w\n%s", v.folder, system, arch, err, out)
	}
	return nil
}
