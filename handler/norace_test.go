//go:build !race

package handler

const raceDetector = false
