package upstash

// NewTransport is for tests of what a store dials with.
var NewTransport = newTransport

// Script is what EVAL brings to servers that are not Upstash.
var Script = script
