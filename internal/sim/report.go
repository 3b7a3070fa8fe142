package sim

import (
	"fmt"
	"io"
)

// Row is a scenario with one result for each of Contenders.
type Row struct {
	Scenario Scenario
	Results  []Result
}

// Report writes a Markdown table for a fleet of so many instances. A cell tells what the
// attacker got in a window, on average and at most, in quotas; the share of the visitors'
// requests that was refused; and the calls to the shared store.
func Report(out io.Writer, instances int, rows []Row) {
	plural := "s"
	if instances == 1 {
		plural = ""
	}
	fmt.Fprintf(out, "\n%d instance%s: quotas per window on average / at most, visitors refused, store calls\n\n| scenario |", instances, plural)
	for _, c := range Contenders {
		fmt.Fprintf(out, " %s |", c.Name)
	}
	fmt.Fprint(out, "\n| --- |")
	for range Contenders {
		fmt.Fprint(out, " --- |")
	}
	fmt.Fprintln(out)
	for _, row := range rows {
		fmt.Fprintf(out, "| %s |", row.Scenario.Name)
		for _, r := range row.Results {
			worst := float64(r.Worst(Limit.Window-Late)) / float64(Limit.Quota)
			fmt.Fprintf(out, " %.2f / %.2f, %.1f %%, %d |", r.Mean(), worst, 100*float64(r.Refused)/float64(max(1, r.Requests)), r.Calls)
		}
		fmt.Fprintln(out)
	}
}
