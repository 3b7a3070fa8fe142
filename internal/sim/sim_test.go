package sim

import (
	"bytes"
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var table = flag.Bool("table", false, "print the table of all contenders")

var fleets = []int{1, 10, 100}

func run(t *testing.T, s Scenario, c Contender, instances int, seed uint64) (r Result) {
	synctest.Test(t, func(t *testing.T) {
		var err error
		r, err = Run(s, c, instances, seed)
		require.NoError(t, err)
	})
	return r
}

// An outage is no amnesty, whatever it looks like and however many instances meet it,
// and the visitors hardly notice.
func TestBarsHold(t *testing.T) {
	for _, instances := range fleets {
		for _, s := range Scenarios {
			t.Run(fmt.Sprintf("%d, %s", instances, s.Name), func(t *testing.T) {
				r := run(t, s, Kit, instances, 1)
				require.NoError(t, Miss(s, instances, r))
				require.GreaterOrEqual(t, r.Mean(), 0.5, "and the limit lets its quota through")
			})
		}
	}
}

// The bars can be missed: by whoever lets all through, refuses all, or begins to count
// anew.
func TestPlainContendersMissTheBars(t *testing.T) {
	for _, s := range Scenarios {
		for _, c := range Contenders[1:] {
			if !s.Sound && (c.Name != "own count" || s.Name != "slow store") {
				require.Error(t, Miss(s, 10, run(t, s, c, 10, 1)), "%s, %s", s.Name, c.Name)
			}
		}
	}
}

func TestTable(t *testing.T) {
	if !*table {
		t.Skip("-table prints it")
	}
	for _, instances := range fleets {
		var rows []Row
		for _, s := range Scenarios {
			row := Row{Scenario: s}
			for _, c := range Contenders {
				row.Results = append(row.Results, run(t, s, c, instances, 1))
			}
			require.NoError(t, Miss(s, instances, row.Results[0]), "%d instances, %s", instances, s.Name)
			rows = append(rows, row)
		}
		var out bytes.Buffer
		Report(&out, instances, rows)
		t.Log(out.String())
	}
}

func TestLeast(t *testing.T) {
	at := func(seconds ...int) []time.Time {
		var times []time.Time
		for _, s := range seconds {
			times = append(times, time.Unix(int64(1000+s), 0))
		}
		return times
	}
	for want, all := range [][][]time.Time{
		{at()},
		{at(0), at(0, 10, 20), at(35, 0)},
		{at(0, 9, 10, 11, 20), at(0, 1, 2, 11), at(8, 9, 10, 11)},
		{at(0, 1, 2, 3, 11), at(8, 9, 10, 11, 12), at(3, 3, 3)},
	} {
		for _, admitted := range all {
			require.Equal(t, want, Least(admitted, 10*time.Second), "%v", admitted)
		}
	}
}
