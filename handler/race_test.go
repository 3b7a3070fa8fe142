//go:build race

package handler

// raceDetector: pools drop things on purpose under it, so allocations mean nothing.
const raceDetector = true
