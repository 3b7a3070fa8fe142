package sim

import (
	"fmt"
	"time"
)

// Late is by how much an admission may be seen after it was counted, and so by how
// much a window may look shorter: the longest call of all contenders.
const Late = 2 * time.Second

// Miss says what bar the kit missed, or nil.
func Miss(s Scenario, instances int, r Result) error {
	share := max(1, Limit.Quota/instances)
	window := Limit.Window - Late
	if s.Sound {
		// Two clocks differ by twice the skew at most, and a window is cut by no more.
		window -= 2 * s.Skew
		if worst := r.Worst(window); worst > Limit.Quota {
			return fmt.Errorf("%d in a window with a sound store: want at most %d", worst, Limit.Quota)
		}
		if r.Refused > 0 {
			return fmt.Errorf("%d requests of visitors refused with a sound store", r.Refused)
		}
	}
	if hits := r.Hits + r.Requests; r.Calls*5 > hits*2 {
		return fmt.Errorf("%d calls to the shared store for %d hits", r.Calls, hits)
	}
	if r.Errors > 0 {
		return fmt.Errorf("%d errors", r.Errors)
	}
	for i, local := range r.Local {
		if s.Outage {
			for _, at := range local {
				// Each instance had asked about him before, so that it knows better.
				if since := at.Sub(r.Start); since < 2*Limit.Window-Late {
					return fmt.Errorf("instance %d let him through after %s, whom the shared store had refused in this window", i, since)
				}
			}
		}
		if worst := Least(local, window); worst > share {
			return fmt.Errorf("instance %d granted %d in a window: want at most %d", i, worst, share)
		}
	}
	most := Limit.Quota
	if instances > 1 {
		// What the shared store let through, and each instance's share beside it.
		most += instances * share
	}
	if worst := r.Worst(window); worst > most {
		return fmt.Errorf("%d in a window: want at most %d", worst, most)
	}
	if most := float64(r.Requests) / 50; instances <= Limit.Quota/visitorHits && r.Refused > 0 || float64(r.Refused) > most {
		return fmt.Errorf("%d of %d requests of visitors refused", r.Refused, r.Requests)
	}
	return nil
}
