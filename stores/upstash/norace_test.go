//go:build !race

package upstash

const RaceDetector = false
