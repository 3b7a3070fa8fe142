package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// table is the result as Markdown.
func table(rows []*row, starts int) string {
	var b strings.Builder
	head, rule := "| program |", "| --- |"
	if starts > 0 {
		head += " median of " + fmt.Sprint(starts) + " starts | 95 of 100 within | beside bare |"
		rule += " ---: | ---: | ---: |"
	}
	for _, arch := range architectures {
		head += " " + arch + " | beside bare |"
		rule += " ---: | ---: |"
	}
	fmt.Fprintf(&b, "%s\n%s\n", head, rule)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s |", r.name)
		if starts > 0 {
			fmt.Fprintf(&b, " %s | %s | %+.1f ms |", ms(percentile(r.times, 50)), ms(percentile(r.times, 95)), slower(rows[0], r).Seconds()*1000)
		}
		for _, arch := range architectures {
			fmt.Fprintf(&b, " %.2f MB | %+.2f MB |", float64(r.size[arch])/1e6, float64(r.size[arch]-rows[0].size[arch])/1e6)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

// percentile is the nearest rank: the least that p of 100 values don't exceed. There has
// to be a value.
func percentile(values []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (p*len(sorted)+99)/100-1)]
}

// slower is the median of what r took longer than base in the same round. It moves less
// with the machine's other work than the difference of the medians does.
func slower(base, r *row) time.Duration {
	differences := make([]time.Duration, len(r.times))
	for i := range r.times {
		differences[i] = r.times[i] - base.times[i]
	}
	return percentile(differences, 50)
}

// missed is an error that names every bar that does not hold.
func missed(rows []*row, times bool) (err error) {
	for _, r := range rows {
		for _, base := range rows {
			if base.folder != r.over {
				continue
			}
			for _, arch := range architectures {
				if more := r.size[arch] - base.size[arch]; more > r.larger {
					err = errors.Join(err, fmt.Errorf("%s is %d bytes larger than %s on %s: more than %d", r.folder, more, base.folder, arch, r.larger))
				}
			}
		}
		if times && r.slower > 0 && len(r.times) > 0 {
			if more := slower(rows[0], r); more > r.slower {
				err = errors.Join(err, fmt.Errorf("%s takes %v longer than %s: more than %v", r.folder, more, rows[0].folder, r.slower))
			}
		}
	}
	return err
}
