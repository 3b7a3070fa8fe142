package upstash

import (
	"time"

	"github.com/sallyport/sallyport/internal/meter"
	"github.com/sallyport/sallyport/stores"
)

// rowLength is how many numbers the script answers to one hit. To one that it counts as
// package meter does they are those of a [meter.Answer], in its order. See step.lua.
const rowLength = 5

// longest is above all times that the script can answer, in microseconds: 71 years.
const longest = 1 << 51

// sound tells whether a row is one that the script can give for this step.
func (a *args) sound(step string, row []int64) bool {
	yes, left, retry, reset, delay := row[0], row[1], row[2], row[3], row[4]
	if max(retry, reset, delay) > longest/int64(a.unit/time.Microsecond) {
		return false
	}
	if a.way == counter {
		if reset != 0 || delay != 0 {
			return false
		}
		if step == refund {
			return yes == 1 && left >= 0 && left <= a.quota && retry >= -2
		}
		return ruling{args: *a, reply: [3]int64(row)}.sound()
	}
	if left < 0 || left > a.quota || retry < 0 || reset < retry || delay < 0 {
		return false
	}
	leaks := a.way == stores.Leaky.String()
	switch {
	case yes == 0:
		return step != refund && left < a.cost && (retry > 0) == (a.cost <= a.quota) && delay == 0
	case yes != 1 || retry != 0 || delay > 0 && (!leaks || step != take):
		return false
	case step == take:
		return left <= a.quota-a.cost
	case step == peek:
		return left >= a.cost
	}
	return true
}

// decision words a row of a hit that is not counted on a plain counter.
func (a *args) decision(row []int64) stores.Decision {
	unit := int64(a.unit / time.Microsecond)
	return meter.Answer{
		Allowed:   row[0] == 1,
		Remaining: row[1],
		Retry:     row[2] * unit,
		Reset:     row[3] * unit,
		Delay:     row[4] * unit,
	}.Decision(stores.Shared)
}
