//go:build race

package upstash

// RaceDetector: what takes long without it is cut short, since the detector looks for
// other things than numbers.
const RaceDetector = true
