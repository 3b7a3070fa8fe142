// Command coldstart measures what the kit adds to the start of a Lambda function. It
// builds programs that differ in their store alone, runs each as Lambda runs a
// bootstrap, behind a stand-in of the Runtime API, and takes the time from exec to the
// first answer. Beside a handler without the kit it shows what each store costs, in
// milliseconds and in bytes, as a Markdown table.
//
//	go run ./internal/coldstart               50 starts of each, and the sizes
//	go run ./internal/coldstart -starts 0     the sizes alone
//
// The stores are doubles on loopback, without TLS, and what they take is taken off: it is
// the program that is measured, and no server. The start of Lambda's sandbox, which comes
// before exec, can't be measured here.
//
// It exits with 1 if a size is over its bar, and with -bars also if a time is: the
// medians of a machine that does other things say little.
package main
