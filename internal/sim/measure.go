package sim

import (
	"slices"
	"sort"
	"time"
)

// Least returns the smallest quota of a fixed window of this length that the
// admissions keep to, wherever its windows begin: what a limit was worth. It sorts
// admitted.
//
// Cutting time at the first admission, and again at the first one after that window,
// would not do: a window may begin with a hit that was counted and whose answer was
// lost.
func Least(admitted []time.Time, window time.Duration) int {
	slices.SortFunc(admitted, time.Time.Compare)
	return sort.Search(len(admitted), func(quota int) bool { return fits(admitted, quota, window) })
}

// fits tells whether windows that do not overlap can be laid so that each admission
// lies in one and none has more than the quota.
func fits(admitted []time.Time, quota int, window time.Duration) bool {
	// soonest[i] is when the last window can end at the earliest that holds admitted[i-1]
	// and nothing of what follows; zero if there is no way.
	soonest := make([]time.Time, len(admitted)+1)
	soonest[0] = time.Unix(0, 0)
	for i, first := range admitted {
		if soonest[i].IsZero() {
			continue
		}
		earliest := first.Add(1) // the window may have begun long before
		if begun := soonest[i].Add(window); begun.After(earliest) {
			earliest = begun
		}
		latest := first.Add(window)
		for j := i + 1; j <= min(len(admitted), i+quota); j++ {
			end := earliest
			if last := admitted[j-1].Add(1); last.After(end) {
				end = last
			}
			if end.After(latest) {
				break
			}
			if j < len(admitted) && end.After(admitted[j]) {
				continue
			}
			if soonest[j].IsZero() || end.Before(soonest[j]) {
				soonest[j] = end
			}
		}
	}
	return !soonest[len(admitted)].IsZero()
}
