// Package fuzzed holds a test that finds decoders without a fuzz target. It reads and checks the types of the whole
// project, which takes its time, and many times that under the race detector: "make test-fuzz" runs it.
package fuzzed
