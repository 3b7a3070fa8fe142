// Package lambdalocal runs the example functions as Lambda would: the very file that is
// deployed, but for this machine's processor, behind AWS's own runtime interface emulator
// (https://github.com/aws/aws-lambda-runtime-interface-emulator), on loopback and without
// Docker. What they count in is a double of Upstash.
//
// It holds tests alone, and "make lambda-local" runs them. They need the program
// aws-lambda-rie. Where it is not on the PATH they are skipped, unless
// SALLYPORT_TEST_REAL=1 asks for it: then go installs it into a folder of the test's own,
// which takes a minute the first time.
package lambdalocal
