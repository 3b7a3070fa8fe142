package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/sallyport/sallyport/internal/upstashtest"
	"github.com/sallyport/sallyport/stores"
)

const (
	instances = 2
	quota     = 10
	share     = quota / instances
)

// config is one run.
type config struct {
	length, window time.Duration
	seed           uint64
	out            io.Writer // progress
}

// run soaks the form for the configured time, or until ctx is done.
func run(ctx context.Context, cfg config) (*report, error) {
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	redis, err := startRedis(dir)
	if err != nil {
		return nil, err
	}
	defer redis.kill()
	front, err := upstashtest.OpenRedis(redis.addr)
	if err != nil {
		return nil, err
	}
	defer front.Close()
	binary := filepath.Join(dir, "contactform")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/sallyport/sallyport/examples/contactform").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the form: %w\n%s", err, out)
	}
	limit := stores.FixedWindow(quota, cfg.window)
	var fleet []*program
	for range instances {
		p, err := startProgram(binary, dir,
			"SALLYPORT_LIMIT="+limit.String(), "SALLYPORT_CLIENT_IP=cloudrun", "SALLYPORT_KEY_SECRET=soak",
			"SALLYPORT_FORM_SECRET=a secret of the soak, and of all instances", "SALLYPORT_MIN_FILL=0",
			fmt.Sprint("SALLYPORT_INSTANCES=", instances),
			"UPSTASH_REDIS_REST_URL="+front.URL, "UPSTASH_REDIS_REST_TOKEN="+front.Token)
		if err != nil {
			return nil, err
		}
		defer p.kill()
		fleet = append(fleet, p)
	}
	fmt.Fprintf(cfg.out, "seed %d, limit %s, %d instances, for %s\n", cfg.seed, limit, instances, cfg.length)

	r := newReport(cfg)
	for _, p := range fleet {
		r.before = append(r.before, p.usage())
	}
	timed, cancel := context.WithTimeout(ctx, cfg.length)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { r.sample(timed, fleet) })
	all.Go(func() { makeTrouble(timed, cfg, redis, front, r) })
	sendTraffic(timed, cfg, fleet, r, &all)
	all.Wait()

	r.settle(ctx, fleet)
	for _, p := range fleet {
		r.logs = append(r.logs, p.end())
	}
	return r, nil
}
