//go:build !race

package dynamo

const RaceDetector = false
