package lambda_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sallyport/sallyport/handler"
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

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
