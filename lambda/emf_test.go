package lambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
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

// journal is what was written, a Write for each element.
type journal struct {
	mu     sync.Mutex
	writes []string
	err    error
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = append(j.writes, string(p))
	return len(p), j.err
}

func (j *journal) bytes() (n int) {
	for _, w := range j.writes {
		n += len(w)
	}
	return n
}

// lines checks each write against the format's rules and returns it decoded.
func (j *journal) lines(t testing.TB) (lines []object) {
	for _, w := range j.writes {
		require.Equal(t, 1, strings.Count(w, "\n"), w)
		require.True(t, strings.HasSuffix(w, "\n"), w)
		require.Less(t, len(w), 2048)
		var line object
		require.NoError(t, json.Unmarshal([]byte(w), &line), w)
		noNulls(t, line, "line")
		var rules struct {
			AWS struct {
				Timestamp         int64
				CloudWatchMetrics []struct {
					Namespace  string
					Dimensions [][]string
					Metrics    []struct{ Name, Unit string }
				}
			} `json:"_aws"`
		}
		require.NoError(t, json.Unmarshal([]byte(w), &rules))
		require.Len(t, rules.AWS.CloudWatchMetrics, 1)
		directive := rules.AWS.CloudWatchMetrics[0]
		require.Equal(t, "Sallyport", directive.Namespace)
		require.Len(t, directive.Dimensions, 1)
		members := 1 // _aws
		for _, name := range directive.Dimensions[0] {
			value, isText := line[name].(string)
			require.True(t, isText && value != "" && len(value) <= 1024, w)
			members++
		}
		require.NotEmpty(t, directive.Metrics)
		require.LessOrEqual(t, len(directive.Metrics), 100)
		for _, m := range directive.Metrics {
			switch value := line[m.Name].(type) {
			case float64:
				require.Equal(t, "Count", m.Unit)
				require.Positive(t, value)
			case []any:
				require.Equal(t, "Milliseconds", m.Unit)
				require.NotEmpty(t, value)
				require.LessOrEqual(t, len(value), 100)
			default:
				require.Fail(t, "no metric", "%s: %s", m.Name, w)
			}
			members++
		}
		require.Len(t, line, members, "more than dimensions and metrics: %s", w)
		lines = append(lines, line)
	}
	return lines
}

// sum adds a metric up over the lines of a policy, "" for those of all requests.
func (j *journal) sum(t testing.TB, policy, metric string) (n int) {
	for _, line := range j.lines(t) {
		if of, _ := line["Policy"].(string); of == policy {
			value, _ := line[metric].(float64)
			n += int(value)
		}
	}
	return n
}

func observed(t testing.TB, limit stores.Limit, observe func(context.Context, handler.Verdict), change ...func(*handler.Config)) *handler.Guard {
	return newGuard(t, limit, append(change, func(cfg *handler.Config) { cfg.Observe = observe })...)
}

func from(addr string) *http.Request {
	r := httptest.NewRequest("POST", "/secret-path", nil)
	r.RemoteAddr = addr + ":1"
	return r
}

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

// moody is a shared store that takes its time, and sometimes fails.
type moody struct {
	*countingStore
	takes time.Duration
	fails error
}

func (s *moody) Take(ctx context.Context, hit stores.Hit) (stores.Decision, error) {
	time.Sleep(s.takes)
	if s.fails != nil {
		return stores.Decision{}, s.fails
	}
	return s.countingStore.Take(ctx, hit)
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
		{time.Millisecond, 20_000},
		{10 * time.Millisecond, 40_000},
		{100 * time.Millisecond, 120_000},
		{time.Second, 1_000_000},
	} {
		t.Run(tt.every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := new(journal)
				observe := lambda.EMF(j)
				g := observed(t, stores.FixedWindow(5, 1000*time.Hour), observe)
				for i := range flood {
					g.Check(from("203.0.113.9"))
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

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

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
