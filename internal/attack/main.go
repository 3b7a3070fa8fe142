package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func main() {
	quick := flag.Bool("quick", false, "the small store only")
	flag.Parse()
	caps := []int{1_000, 50_000}
	if *quick {
		caps = caps[:1]
	}
	if !report(os.Stdout, caps, []int{1, 5, 100}) {
		os.Exit(1)
	}
}

// report prints a line for each attack, and returns false if a bar was missed.
func report(out io.Writer, caps, quotas []int) (ok bool) {
	ok = true
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "keys\tcounts\tquota\toffender\tbeside\tcheapest flood\tbar\tplain LRU\tverdict\t")
	for _, k := range kinds {
		for i, maxKeys := range caps {
			if i > 0 && !k.large {
				continue
			}
			for _, quota := range quotas {
				ok = reportLimit(w, k, maxKeys, quota) && ok
			}
		}
	}
	w.Flush()
	return ok
}

// reportLimit prints the lines of one limit.
func reportLimit(w io.Writer, k kind, maxKeys, quota int) (ok bool) {
	ok = true
	for _, o := range offenders {
		if o.used(quota) == 0 {
			continue
		}
		bar := o.bar(maxKeys, quota)
		for _, sc := range k.scenes {
			most := bar + bar/4 + maxKeys
			requests, perKey := cheapest(sc, o, k.of(quota), maxKeys, most)
			text := fmt.Sprintf("%d (%d a key)", requests, perKey)
			if perKey == 0 {
				text = fmt.Sprintf("none in %d", most)
			}
			verdict := "holds"
			if perKey != 0 && requests < bar {
				verdict, ok = "MISSED", false
			}
			fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\t%s\t%d\t%d\t%s\t\n", maxKeys, k.name, quota, o.name, sc.name,
				text, bar, plainLRU(maxKeys, o.hits(quota)), verdict)
		}
	}
	return ok
}
