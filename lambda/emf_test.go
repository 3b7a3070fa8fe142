package lambda_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
	"github.com/sallyport/sallyport/lambda"
	"github.com/sallyport/sallyport/stores"
)

// A line comes with the first request, one for each kind, and says what was decided.
func TestEMFAtOnce(t *testing.T) {
	defer func(name string) { lambdacontext.FunctionName = name }(lambdacontext.FunctionName)
	lambdacontext.FunctionName = "web\"hook\n"
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		g := observed(t, fivePerHour, lambda.EMF(j))
		for range 6 {
			g.Check(from("203.0.113.9"))
		}
		now := time.Now().UnixMilli()
		require.Len(t, j.lines(t), 12)
		const head = `{"_aws":{"Timestamp":%d,"CloudWatchMetrics":[{"Namespace":"Sallyport","Dimensions":[["FunctionName"%s]],"Metrics":[%s]}]},"FunctionName":"web\"hook?"%s}` + "\n"
		require.Equal(t, fmt.Sprintf(head, now, ``, `{"Name":"Requests","Unit":"Count"}`, `,"Requests":1`), j.writes[0])
		require.Equal(t, fmt.Sprintf(head, now, `,"Policy"`, `{"Name":"Allowed","Unit":"Count"},{"Name":"Local","Unit":"Count"}`, `,"Policy":"test","Allowed":1,"Local":1`), j.writes[1])
		for metric, want := range map[string]int{"Requests": 6, "Refused": 1, "Unavailable": 0, "HungUp": 0} {
			require.Equal(t, want, j.sum(t, "", metric), metric)
		}
		for metric, want := range map[string]int{"Allowed": 5, "Refused": 1, "NearLimit": 2, "Local": 6, "Remembered": 0, "Undecided": 0} {
			require.Equal(t, want, j.sum(t, "test", metric), metric)
		}
		require.NotContains(t, strings.Join(j.writes, ""), "203.0.113")
		require.NotContains(t, strings.Join(j.writes, ""), "secret")
	})
}

// Who decided, how long the store took, and what never reached a policy.
func TestEMFPathsAndLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		store := &moody{countingStore: newCounting(t), takes: 12*time.Millisecond + 345*time.Microsecond}
		g := observed(t, fivePerHour, lambda.EMF(j), func(cfg *handler.Config) { cfg.Store = store })
		for range 8 {
			g.Check(from("203.0.113.9")) // five allowed, one refused, two remembered
		}
		require.Equal(t, 2, j.sum(t, "test", "Remembered"))
		require.Zero(t, j.sum(t, "test", "Local"))
		latencies := 0
		for _, line := range j.lines(t) {
			if values, ok := line["StoreLatency"].([]any); ok {
				require.Equal(t, []any{12.345}, values)
				latencies++
			}
		}
		require.Equal(t, 6, latencies)

		store.fails = fmt.Errorf("away: %w", stores.ErrUnavailable)
		g.Check(from("203.0.113.10"))
		require.Equal(t, 1, j.sum(t, "test", "Local"))

		policies := func(outage stores.Outage) func(*handler.Config) {
			return func(cfg *handler.Config) { cfg.Store, cfg.Policies[0].Outage = store, outage }
		}
		j = new(journal)
		observed(t, fivePerHour, lambda.EMF(j), policies(stores.OutageRefuse)).Check(from("203.0.113.9"))
		observed(t, fivePerHour, lambda.EMF(j), policies(stores.OutageAllow)).Check(from("203.0.113.9"))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		observed(t, fivePerHour, lambda.EMF(j), policies(stores.OutageAllow)).Check(from("203.0.113.9").WithContext(gone))
		require.Equal(t, 3, j.sum(t, "", "Requests"))
		require.Equal(t, 1, j.sum(t, "", "Unavailable"))
		require.Equal(t, 1, j.sum(t, "", "HungUp"))
		require.Equal(t, 2, j.sum(t, "test", "Undecided"))
		require.Zero(t, j.sum(t, "test", "NearLimit"))
	})
}

// Beyond what a line has room for, the latencies are a fair choice and the longest.
func TestEMFManyLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		observe := lambda.EMF(j)
		v := handler.Verdict{Allowed: true, Outcomes: []handler.Outcome{{Policy: "p", Limit: fivePerHour, Decision: stores.Decision{Allowed: true}}}}
		for i := range 10_000 {
			v.Elapsed = time.Duration(i) * time.Millisecond
			observe(t.Context(), v)
		}
		j.writes = nil
		observe(t.Context(), handler.Verdict{})
		for _, line := range j.lines(t) {
			values, ok := line["StoreLatency"].([]any)
			if !ok {
				continue
			}
			require.Len(t, values, 33)
			require.Equal(t, 9999.0, values[32])
			late := 0
			for _, v := range values {
				if v.(float64) > 5000 {
					late++
				}
			}
			require.Greater(t, late, 3, "only the first are kept")
			require.Less(t, late, 30, "only the last are kept")
		}
	})
}

// A flood costs next to nothing to log, at any speed, and no count is lost.
func TestEMFFlood(t *testing.T) {
	const flood = 100_000
	for _, tt := range []struct {
		every time.Duration
		most  int // bytes
	}{
		{0, 20_000},
		{10 * time.Millisecond, 40_000},
		{100 * time.Millisecond, 120_000},
		{time.Second, 1_000_000},
	} {
		t.Run(tt.every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := new(journal)
				observe := lambda.EMF(j)
				g := observed(t, stores.FixedWindow(5, 1000*time.Hour), observe)
				var v handler.Verdict
				for i := range flood {
					if i < 1000 {
						v = g.Check(from("203.0.113.9"))
					} else {
						observe(t.Context(), v) // as the guard would, which takes longer
					}
					if i == 0 {
						require.Len(t, j.writes, 2, "the first shows at once")
					}
					time.Sleep(tt.every)
				}
				t.Logf("%d requests, one in %s: %d lines, %d bytes", flood, tt.every, len(j.writes), j.bytes())
				require.Less(t, j.bytes(), tt.most)
				held := flood - j.sum(t, "", "Requests")
				require.GreaterOrEqual(t, held, 0)
				if tt.every > 0 {
					require.LessOrEqual(t, held, int(time.Minute/tt.every), "a line is due every minute")
				}

				observe(t.Context(), handler.Verdict{})
				require.Equal(t, flood, j.sum(t, "", "Requests"))
				require.Equal(t, flood-5, j.sum(t, "", "Refused"))
				require.Equal(t, 5, j.sum(t, "test", "Allowed"))
				require.Equal(t, flood-5, j.sum(t, "test", "Refused"))
				before := len(j.writes)
				observe(t.Context(), handler.Verdict{})
				require.Len(t, j.writes, before, "there was nothing more")
			})
		})
	}
}

// What an instance held when it fell quiet has its own time, however long it was frozen.
func TestEMFAfterAQuietTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		g := observed(t, fivePerHour, lambda.EMF(j))
		for range 50 {
			g.Check(from("203.0.113.9"))
		}
		require.Len(t, j.writes, 40)
		flooded := time.Now().UnixMilli()
		time.Sleep(3 * time.Hour)
		j.writes = nil
		g.Check(from("198.51.100.1"))
		times := map[int64]int{}
		for _, line := range j.lines(t) {
			if line["Policy"] == nil {
				times[int64(line["_aws"].(object)["Timestamp"].(float64))] += int(line["Requests"].(float64))
			}
		}
		require.Equal(t, map[int64]int{flooded: 30, time.Now().UnixMilli(): 1}, times)

		// And twenty more show at once.
		j.writes = nil
		for range 30 {
			g.Check(from("198.51.100.1"))
		}
		require.Len(t, j.writes, 2*19)
	})
}

// A writer that fails costs nobody an answer, and one that hangs only the request whose
// line it is.
func TestEMFWriterTrouble(t *testing.T) {
	j := &journal{err: errors.New("no space")}
	g := observed(t, fivePerHour, lambda.EMF(j))
	for i := range 6 {
		require.Equal(t, i < 5, g.Check(from("203.0.113.9")).Allowed)
	}

	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		first := true
		var mu sync.Mutex
		g := observed(t, fivePerHour, lambda.EMF(writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			mine := first
			first = false
			mu.Unlock()
			if mine {
				<-hang
			}
			return len(p), nil
		})))
		go g.Check(from("203.0.113.9"))
		synctest.Wait() // it hangs
		for i := range 5 {
			require.Equal(t, i < 4, g.Check(from("203.0.113.9")).Allowed)
		}
		close(hang)
	})
}

// Any number of requests at once: each is counted once.
func TestEMFAtTheSameTime(t *testing.T) {
	j := new(journal)
	observe := lambda.EMF(j)
	g := observed(t, fivePerHour, observe)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 500 {
				g.Check(from(fmt.Sprint("203.0.113.", i)))
			}
		})
	}
	wg.Wait()
	observe(t.Context(), handler.Verdict{})
	require.Equal(t, 4000, j.sum(t, "", "Requests"))
	require.Equal(t, 40, j.sum(t, "test", "Allowed"))
	require.Equal(t, 3960, j.sum(t, "test", "Refused"))
}

// Names without end take no memory without end, and an odd name breaks no line.
func TestEMFManyPolicies(t *testing.T) {
	j := new(journal)
	observe := lambda.EMF(j)
	names := []string{`a"b\c`, ":colon", strings.Repeat("x", 128)}
	for i := range 1000 {
		names = append(names, fmt.Sprint("policy-", i))
	}
	for _, name := range names {
		observe(t.Context(), handler.Verdict{Allowed: true, Outcomes: []handler.Outcome{{Policy: name, Decision: stores.Decision{Allowed: true}}}})
	}
	observe(t.Context(), handler.Verdict{})
	seen := map[string]bool{}
	for _, line := range j.lines(t) {
		if name, ok := line["Policy"].(string); ok {
			seen[name] = true
		}
	}
	require.Len(t, seen, 101)
	require.True(t, seen[`a"b\c`])
	require.True(t, seen["?colon"])
	require.Equal(t, 903, j.sum(t, "(others)", "Allowed"))
}

// Counting a request that writes no line makes no garbage.
func TestEMFAllocations(t *testing.T) {
	observe := lambda.EMF(new(bytes.Buffer))
	v := handler.Verdict{Status: 429, Outcomes: []handler.Outcome{{Policy: "p", Limit: fivePerHour, Decision: stores.Decision{Source: stores.Remembered}}}}
	for range 50 {
		observe(t.Context(), v)
	}
	require.Zero(t, testing.AllocsPerRun(1000, func() { observe(context.Background(), v) }))
}
