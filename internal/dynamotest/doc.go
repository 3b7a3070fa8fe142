// Package dynamotest runs a DynamoDB for tests: an engine in this process
// (minidyn) that misbehaves on demand, and a real one beside it (dynalite).
//
// The engine in the process answers over an in-memory transport, so that tests
// may run in a synctest bubble, or over loopback, so that connections are real.
// What it does wrong is a [Fault]; what it was asked is counted by API action.
package dynamotest
