package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The programs start, answer, and have their own store decide. AWS's config package is
// another module, whose download a test does not ask for.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	var rows []*row
	for _, v := range variants {
		if v.folder == "config" {
			continue
		}
		require.NoError(t, compile(v, runtime.GOOS, runtime.GOARCH, bootstrap(dir, v)))
		rows = append(rows, &row{variant: v})
	}
	require.NoError(t, race(dir, rows, 2))
	for _, r := range rows {
		require.Len(t, r.times, 2)
		for _, took := range r.times {
			require.Positive(t, took, r.folder)
		}
	}

	// What does not do what it is measured for is no measurement.
	stand, err := newStandIns()
	require.NoError(t, err)
	defer stand.close()
	asks := variants[2]
	_, err = stand.start(bootstrap(dir, variants[1]), asks)
	require.ErrorContains(t, err, `decided by "local"; want 200 by "shared"`)
	asks.store = "dynamo"
	_, err = stand.start(bootstrap(dir, variants[2]), asks)
	require.ErrorContains(t, err, "UPSTASH_REDIS_REST_URL")
	_, err = stand.start(filepath.Join(dir, "nothing"), asks)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestPercentile(t *testing.T) {
	var values []time.Duration
	for i := 100; i > 0; i-- {
		values = append(values, time.Duration(i))
	}
	require.Equal(t, time.Duration(50), percentile(values, 50))
	require.Equal(t, time.Duration(95), percentile(values, 95))
	require.Equal(t, time.Duration(100), percentile(values, 100))
	require.Equal(t, time.Duration(3), percentile([]time.Duration{9, 1, 3}, 50))
	require.Equal(t, time.Duration(7), percentile([]time.Duration{7}, 1))
}

func TestBars(t *testing.T) {
	const ms = time.Millisecond
	rows := func(mb float64, times ...time.Duration) []*row {
		sizes := func(mb float64) map[string]int64 {
			return map[string]int64{"amd64": int64(mb * 1e6), "arm64": int64(mb * 1e6)}
		}
		return []*row{
			{variant: variant{name: "bare", folder: "bare"}, size: sizes(6), times: []time.Duration{ms, 9 * ms, 2 * ms}},
			{variant: variant{name: "memory", folder: "memory"}, size: sizes(7), times: []time.Duration{2 * ms, 10 * ms, 3 * ms}},
			{variant: variant{name: "store", folder: "store", slower: ms, larger: 300_000, over: "memory"}, size: sizes(mb), times: times},
		}
	}
	tests := []struct {
		name  string
		mb    float64
		times []time.Duration
		bars  bool
		says  []string
	}{
		{"within", 7.3, []time.Duration{2 * ms, 10 * ms, 3 * ms}, true, nil},
		{"larger", 7.4, []time.Duration{2 * ms, 10 * ms, 3 * ms}, false, []string{"store is 400000 bytes larger than memory on amd64", "on arm64"}},
		{"slower", 7.3, []time.Duration{3 * ms, 11 * ms, 2 * ms}, true, []string{"store takes 2ms longer than bare"}},
		{"slower, on a busy machine", 7.3, []time.Duration{3 * ms, 11 * ms, 2 * ms}, false, nil},
		{"one slow start", 7.3, []time.Duration{2 * ms, 90 * ms, 3 * ms}, true, nil},
		{"sizes alone", 7.3, nil, true, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := missed(rows(test.mb, test.times...), test.bars)
			if test.says == nil {
				require.NoError(t, err)
			}
			for _, text := range test.says {
				require.ErrorContains(t, err, text)
			}
		})
	}

	require.Equal(t, `| program | median of 3 starts | 95 of 100 within | beside bare | amd64 | beside bare | arm64 | beside bare |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| bare | 2.0 ms | 9.0 ms | +0.0 ms | 6.00 MB | +0.00 MB | 6.00 MB | +0.00 MB |
| memory | 3.0 ms | 10.0 ms | +1.0 ms | 7.00 MB | +1.00 MB | 7.00 MB | +1.00 MB |
| store | 3.0 ms | 11.0 ms | +2.0 ms | 7.25 MB | +1.25 MB | 7.25 MB | +1.25 MB |
`, table(rows(7.25, 3*ms, 11*ms, 2*ms), 3))
	require.Contains(t, table(rows(7.25), 0), "| program | amd64 | beside bare | arm64 | beside bare |\n")
}
