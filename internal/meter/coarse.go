package meter

import "github.com/sallyport/sallyport/stores"

// A log without its stamps, for who has no room for them: two windows as a sliding
// limit has, of which the older counts whole until it is over. It never lets more
// than the quota pass in any interval as long as the window, as the log itself, and
// may refuse for up to a window longer than that.

// fits tells whether the older window leaves room for so much.
func (r *Rule) fits(s State, left, room int64) bool {
	if r.Algorithm == stores.Log {
		return s.P <= room
	}
	return s.P*left <= room*r.Window
}

// older is what the older window counts, rounded up.
func (r *Rule) older(s State, left int64) int64 {
	if r.Algorithm == stores.Log {
		return s.P
	}
	return (s.P*left + r.Window - 1) / r.Window
}

// shrinks is how long it takes from the start of a window until an older one with n
// used leaves room for so much.
func (r *Rule) shrinks(n, room int64) int64 {
	if n <= room {
		return 0
	}
	if r.Algorithm == stores.Log {
		return r.Window
	}
	return r.Window - room*r.Window/n
}
