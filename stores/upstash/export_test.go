package upstash

// NewTransport is for tests of what a store dials with.
var NewTransport = newTransport
