package upstashtest

import (
	"fmt"
	"strconv"
	"strings"
)

// evaluate answers as package upstash's script does, payments and blocks apart, where no
// time passes: all levels are counters, and a hit for which there is no room has to wait
// for a whole window. It is called with mu held.
func (s *Scripted) evaluate(c []string) string {
	const each = 9 // arguments for each key
	many, _ := strconv.Atoi(c[2])
	keys, step, args := c[3:3+many], c[3+many], c[4+many:]
	var answer []string
	for i, key := range keys {
		a := args[each*i : each*(i+1)]
		var n [each]int64
		for j := 1; j < each; j++ {
			n[j], _ = strconv.ParseInt(a[j], 10, 64)
		}
		quota, cost, length, open := n[1], n[2], n[3], n[8] == 1
		level, allowed := min(s.counters[key], quota), cost <= quota-min(s.counters[key], quota)
		switch {
		case step == "refund":
			level, allowed = max(0, level-cost), true
		case step == "take" && allowed:
			level += cost
		}
		if step != "peek" {
			s.counters[key], s.expiry[key] = level, length
		}
		yes, retry := 1, int64(0)
		if !allowed {
			yes = 0
			if cost <= quota {
				retry = length
			}
		}
		if a[0] == "counter" {
			answer = append(answer, fmt.Sprintf("%d,%d,%d,0,0", yes, level, length))
		} else {
			answer = append(answer, fmt.Sprintf("%d,%d,%d,%d,0", yes, quota-level, retry, length))
		}
		if !allowed && !open {
			break
		}
	}
	return "[" + strings.Join(answer, ",") + "]"
}
