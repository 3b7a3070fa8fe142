// Package sim simulates fleets of instances before one shared store that fails in many
// ways, and counts what an attacker gets through and what honest visitors lose. Beside
// this kit it runs the three plain ways to meet an outage: let everybody through, refuse
// everybody, and count in each instance without a memory of what went before.
//
// It runs on virtual time, which only tests have (testing/synctest), so it is a test. The
// bars of the kit are checked with all other tests. The table of all contenders takes
// about a minute and is printed by
//
//	go test ./internal/sim -v -run TestTable -table
//
// The traffic is seeded; the kit's own jitter is not, so that figures differ a little from
// run to run. The bars hold for every run.
package sim
